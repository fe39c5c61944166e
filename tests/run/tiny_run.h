#pragma once
// A run small enough for tests: tiny data sets, a LLaVA of a few thousand parameters, ranks as
// threads of this process.
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/dist/thread_group.h"
#include "lib/run/trainer.h"
#include "tests/data/tiny_dataset.h"

namespace mm::run::test {

/// Two stages over sets of 24 samples: language on texts and pictures, then everything. `set` are
/// overrides.
inline Recipe tiny_recipe(const std::filesystem::path& directory,
                          const std::vector<std::string>& set = {}) {
  if (!std::filesystem::exists(directory / "data"))
    data::test::write_tiny_dataset(directory / "data", 24);
  std::ofstream(directory / "recipe.toml") << R"(
[run]
seed = 5
log_every = 1000
[model]
init_std = 0.2
[model.vision]
hidden = 8
layers = 2
heads = 2
patch = 2
image_side = 4
[model.language]
hidden = 16
layers = 2
heads = 4
kv_heads = 2
mlp = 24
[precision]
compute = "float64"
[comm]
bucket_mib = 1
[[stage]]
name = "language"
data = "data"
train = ["language"]
steps = 4
sequence_length = 24
packs_per_step = 4
weight_decay = 0.1
lr = { language = 3e-3 }
schedule = { kind = "cosine", warmup_steps = 1 }
[[stage]]
name = "all"
data = "data"
steps = 5
sequence_length = 24
packs_per_step = 4
lr = { vision = 1e-3, projector = 2e-3, language = 1e-3 }
augment = { shift_pixels = 1, flip_probability = 0.5 }
)";
  return read_recipe(directory / "recipe.toml", set);
}

/// What a run leaves: rank 0's weights and records.
struct Outcome {
  ExitCode code = ExitCode::kDone;
  std::map<std::string, at::Tensor> weights;
  std::vector<StepRecord> records;
};

/// Runs the recipe on `ranks` threads.
inline Outcome run_threads(const Recipe& recipe, const std::filesystem::path& run, int ranks,
                           TrainOptions options = {}) {
  std::filesystem::create_directories(run);
  options.run_directory = run;
  options.keep_records = true;
  auto data_groups = dist::make_thread_groups(ranks, {.name = "data"});
  Outcome outcome;
  std::mutex mutex;
  dist::run_thread_ranks(ranks, {.name = "control"}, [&](dist::Group& control) {
    // The body owns no control group, so the Comm borrows it through a pass-through owner.
    struct Borrowed final : dist::Group {
      explicit Borrowed(dist::Group& group) : group(group) {}
      int rank() const override { return group.rank(); }
      int size() const override { return group.size(); }
      const std::string& name() const override { return group.name(); }
      void all_reduce_sum(at::Tensor t) override { group.all_reduce_sum(t); }
      void all_reduce_max(at::Tensor t) override { group.all_reduce_max(t); }
      void reduce_scatter_sum(at::Tensor out, const at::Tensor& in) override {
        group.reduce_scatter_sum(out, in);
      }
      void all_gather(at::Tensor out, const at::Tensor& in) override { group.all_gather(out, in); }
      void broadcast(at::Tensor t, int root) override { group.broadcast(t, root); }
      std::vector<std::string> all_gather_bytes(const std::string& bytes) override {
        return group.all_gather_bytes(bytes);
      }
      void barrier() override { group.barrier(); }
      dist::Group& group;
    };
    const int rank = control.rank();
    Comm comm{.rank = rank,
              .world = ranks,
              .host = "test",
              .data = std::move(data_groups[static_cast<size_t>(rank)]),
              .control = std::make_unique<Borrowed>(control)};
    Trainer trainer(recipe, comm, options);
    const ExitCode code = trainer.run();
    if (rank != 0) return;
    const std::scoped_lock lock(mutex);
    outcome.code = code;
    outcome.records = trainer.records();
    const model::Model& model = trainer.params().model();
    for (size_t i = 0; i < model.params.size(); ++i)
      outcome.weights[model.params[i].name] =
          trainer.params().master(static_cast<model::ParamId>(i)).clone();
  });
  return outcome;
}

/// Largest relative difference of two runs' weights, tensor by tensor (2-norm). Key biases without
/// rotary positions are left out: softmax ignores them, so their gradient is zero but for rounding,
/// and AdamW makes full steps of that.
inline double weight_difference(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (const auto& [name, value] : a.weights) {
    if (name.ends_with("k_proj.bias") || name.ends_with("to_k.bias")) continue;
    const double scale = value.norm().item<double>();
    worst = std::max(worst,
                     (value - b.weights.at(name)).norm().item<double>() / std::max(scale, 1e-12));
  }
  return worst;
}

inline bool same_bits(const Outcome& a, const Outcome& b) {
  for (const auto& [name, value] : a.weights) {
    if (!value.equal(b.weights.at(name))) return false;
  }
  return a.weights.size() == b.weights.size();
}

}  // namespace mm::run::test
