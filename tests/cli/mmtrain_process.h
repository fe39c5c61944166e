#pragma once
// Starts the real mmtrain as processes, over Gloo on the loopback address.
#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/process.h"
#include "lib/run/metrics.h"
#include "lib/state/load_state.h"
#include "tests/run/tiny_run.h"

namespace mm::test {

/// The tiny recipe of tests/run, in fp32, saving every third step.
inline std::filesystem::path write_recipe(const std::filesystem::path& directory) {
  run::test::tiny_recipe(directory);
  std::string text = read_file(directory / "recipe.toml");
  text.replace(text.find("float64"), 7, "fp32");
  text += "[checkpoint]\nevery_steps = 3\nkeep_last = 3\n";
  text.insert(text.find("bucket_mib"), "timeout_s = 20\n");
  std::ofstream(directory / "recipe.toml") << text;
  return directory / "recipe.toml";
}

struct Ended {
  ExitStatus status;
  std::string output;
};

/// `mmtrain ARGS`, both streams captured.
class Mmtrain {
 public:
  Mmtrain(const std::filesystem::path& directory, std::vector<std::string> arguments,
          std::vector<std::string> environment = {})
      : output_(directory / ("out-" + std::to_string(counter()++))) {
    arguments.insert(arguments.begin(), MM_BIN_DIR "/mmtrain");
    child_.emplace(
        Child::spawn({.command = arguments, .environment = environment, .output = output_}));
  }
  Ended wait() {
    const auto status = child_->wait_for(120);
    REQUIRE_MESSAGE(status, "mmtrain did not end in 120 s");
    return {*status, read_file(output_)};
  }
  Child& child() { return *child_; }

 private:
  static int& counter() {
    static int next = 0;
    return next;
  }
  std::filesystem::path output_;
  std::optional<Child> child_;
};

/// `mmtrain launch --nproc ranks -- run RECIPE --run RUN`.
inline Mmtrain launch(const std::filesystem::path& directory, const std::string& run, int ranks,
                      std::vector<std::string> more = {},
                      std::vector<std::string> environment = {}) {
  std::vector<std::string> arguments{"launch",
                                     "--nproc",
                                     std::to_string(ranks),
                                     "--",
                                     "run",
                                     (directory / "recipe.toml").string(),
                                     "--run",
                                     (directory / run).string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return Mmtrain(directory, arguments, environment);
}

/// All tensors of a run's newest checkpoint.
inline std::map<std::string, at::Tensor> newest_tensors(const std::filesystem::path& run) {
  const state::Checkpoint checkpoint = state::open_checkpoint(run);
  std::map<std::string, at::Tensor> tensors;
  std::vector<state::StateTensor> wanted;
  for (const ckpt::TensorRecord& record : checkpoint.manifest.tensors) {
    const std::vector<int64_t> shape(record.shape.begin(), record.shape.end());
    wanted.push_back({record.name, at::empty(shape, at::kFloat)});
    tensors[record.name] = wanted.back().value;
  }
  state::load_tensors(checkpoint, wanted);
  return tensors;
}

/// Polls until `condition` holds; fails after 60 s.
inline void wait_until(const std::function<bool()>& condition, const char* what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() < end, what);
    std::this_thread::yield();
  }
}

}  // namespace mm::test
