#include "lib/state/save_state.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "lib/base/error.h"
#include "lib/ckpt/find.h"
#include "lib/dist/thread_group.h"
#include "lib/state/load_state.h"
#include "tests/data/tiny_dataset.h"

namespace fs = std::filesystem;
using namespace mm::state;
using mm::data::test::TempDir;

namespace {

std::vector<StateTensor> tensors(double scale, at::ScalarType dtype = at::kFloat) {
  return {{"b.weight", at::arange(12, dtype).view({3, 4}) * scale},
          {"a.bias", at::ones({5}, dtype) * scale},
          {"scalar", at::full({}, scale, dtype)}};
}

void save(const fs::path& run_ckpt, int ranks, uint64_t step, double scale) {
  mm::dist::run_thread_ranks(ranks, {}, [&](mm::dist::Group& group) {
    save_state(group, {.run_ckpt = run_ckpt,
                       .step = step,
                       .tensors = tensors(scale),
                       .state = {{"scale", scale}}});
  });
}

std::vector<StateTensor> zeros(at::ScalarType dtype = at::kFloat) {
  std::vector<StateTensor> out;
  for (const StateTensor& t : tensors(1, dtype)) out.push_back({t.name, at::zeros_like(t.value)});
  return out;
}

}  // namespace

TEST_CASE(
    "save_state, load_tensors: what 1, 2 and 3 ranks saved loads whole on one, in fp32 and "
    "float64") {
  TempDir dir;
  for (int ranks : {1, 2, 3}) {
    const fs::path run_ckpt = dir / std::to_string(ranks);
    save(run_ckpt, ranks, 7, 2.5);
    const Checkpoint checkpoint = open_checkpoint(run_ckpt);
    CHECK(checkpoint.manifest.step == 7);
    CHECK(checkpoint.manifest.state.at("scale") == 2.5);
    for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      const std::vector<StateTensor> loaded = zeros(dtype);
      load_tensors(checkpoint, loaded);
      for (size_t i = 0; i < loaded.size(); ++i)
        CHECK(loaded[i].value.equal(tensors(2.5, dtype)[i].value));
    }
  }
}

TEST_CASE("save_state: retention keeps the newest two, `latest` names the newest") {
  TempDir dir;
  for (uint64_t step = 1; step <= 4; ++step) save(dir.path(), 2, step, static_cast<double>(step));
  size_t whole = 0;
  for (const auto& found : mm::ckpt::list_checkpoints(dir.path())) whole += found.committed;
  CHECK(whole == 2);
  CHECK(open_checkpoint(dir.path()).manifest.step == 4);
}

TEST_CASE(
    "save_state: when one rank cannot write, every rank throws and the earlier checkpoint stays "
    "the newest") {
  TempDir dir;
  save(dir.path(), 2, 1, 1);
  std::atomic<int> failures = 0;
  mm::dist::run_thread_ranks(2, {}, [&](mm::dist::Group& group) {
    const auto fail = [&](std::string_view point) {
      if (group.rank() == 1 && point == "file.half") throw mm::IoError("no space left");
    };
    try {
      save_state(group, {.run_ckpt = dir.path(), .step = 2, .tensors = tensors(2), .state = {}},
                 fail);
    } catch (const mm::IoError& error) {
      CHECK(std::string(error.what()).find("rank 1: no space left") != std::string::npos);
      ++failures;
    }
  });
  CHECK(failures == 2);
  CHECK(open_checkpoint(dir.path()).manifest.step == 1);
}

TEST_CASE("load_tensors: a missing tensor and another shape are named, nothing is left random") {
  TempDir dir;
  save(dir.path(), 1, 1, 1);
  const Checkpoint checkpoint = open_checkpoint(dir.path());
  CHECK_THROWS_WITH_AS(load_tensors(checkpoint, {{"c.weight", at::zeros({1})}}),
                       doctest::Contains("no tensor c.weight"), mm::DataError);
  CHECK_THROWS_WITH_AS(load_tensors(checkpoint, {{"a.bias", at::zeros({6})}}),
                       doctest::Contains("[5] in the checkpoint, [6] in the model"), mm::DataError);
}

TEST_CASE(
    "find_checkpoint: all ranks get the same one, a damaged one is passed over, none is none") {
  TempDir dir;
  save(dir.path(), 2, 1, 1);
  save(dir.path(), 2, 2, 2);
  fs::resize_file(dir / "step-00000002/shard-rank-00001.safetensors", 40);
  mm::dist::run_thread_ranks(3, {}, [&](mm::dist::Group& group) {
    const auto found = find_checkpoint(group, dir.path());
    REQUIRE(found);
    CHECK(found->manifest.step == 1);
    CHECK_FALSE(find_checkpoint(group, dir / "empty"));
  });
  fs::resize_file(dir / "step-00000001/shard-rank-00000.safetensors", 40);
  CHECK_THROWS_AS(open_checkpoint(dir.path()), mm::DataError);
}
