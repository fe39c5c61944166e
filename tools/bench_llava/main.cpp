#include <ATen/ATen.h>
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "lib/model/cpu_allocator.h"
#include "lib/model/flops.h"
#include "lib/model/llava.h"
#include "tools/bench_llava/bench_batch.h"
#include "tools/bench_llava/process_cost.h"
#include "tools/bench_llava/program_step.h"
#include "tools/bench_llava/training_state.h"
#include "tools/bench_main.h"

namespace {

using namespace mm;

struct Options {
  std::string shape = "50m", dtype = "fp32", layout = "packed", train = "all", recompute = "none";
  int steps = 3;
  int64_t tokens = 2048;
  int threads = 1;
  bool own_allocator = true, optimizer = false;
};

// A step by the slow reference, or as a program that recomputes.
class StepUnderTest {
 public:
  StepUnderTest(const Options& options, const model::Model& m, const std::vector<bool>& trainable,
                const model::Batch& batch, bench::TrainingState& state)
      : model_(m), trainable_(trainable), batch_(batch), state_(state) {
    if (options.recompute != "none")
      program_ =
          std::make_unique<bench::ProgramStep>(m, trainable, batch, state, options.recompute);
  }

  void run() {
    state_.clear_gradients();
    if (program_) return program_->run();
    const double seed = 1.0 / static_cast<double>(batch_.sizes.targets);
    model::eager_train({model_, state_.params(), trainable_, state_.sink(), seed}, batch_);
    state_.update();
  }

 private:
  const model::Model& model_;
  const std::vector<bool>& trainable_;
  const model::Batch& batch_;
  bench::TrainingState& state_;
  std::unique_ptr<bench::ProgramStep> program_;
};

struct Measured {
  std::vector<double> times, own_shares, wide_shares;  ///< seconds; shares of the GEMM rates
};

// One step unmeasured, then `steps`. Rates drift on a shared machine: each step has its own limits,
// measured beside it.
Measured measure(StepUnderTest& step, int steps, bool bf16, double flops) {
  Measured measured;
  for (int i = 0; i <= steps; ++i) {
    const double wide = bench::gemm_rate(false, 0.2),
                 own = bf16 ? bench::gemm_rate(true, 0.2) : wide;
    const double start = bench::processor_s();
    step.run();
    if (i == 0) continue;
    const double took = bench::processor_s() - start;
    measured.times.push_back(took);
    measured.own_shares.push_back(flops / took / own);
    measured.wide_shares.push_back(flops / took / wide);
  }
  return measured;
}

std::vector<bool> trained(const Options& options, const model::Model& m) {
  std::vector<bool> trainable = model::params_in_use(m);
  for (size_t i = 0; i < m.params.size(); ++i)
    if (options.train == "not-tower" && m.params[i].part == model::Part::kVision)
      trainable[i] = false;
  return trainable;
}

void run_bench(const Options& options) {
  bench::start_tensors(options.threads);
  if (options.own_allocator) model::install_cpu_allocator(int64_t{1} << 30);
  const bool bf16 = options.dtype == "bf16";
  const auto dtype = bf16 ? at::kBFloat16 : at::kFloat;
  const model::LlavaConfig config = bench::bench_config(options.shape);
  const model::Model m = model::build_llava(config);
  const std::vector<bool> trainable = trained(options, m);
  double elements = 0;
  for (const auto& param : m.params)
    elements += static_cast<double>(c10::multiply_integers(param.shape));
  (void)bench::gemm_rate(bf16, 0.1);
  const int64_t resident = bench::resident_bytes();
  const auto input = bench::bench_batch(config, options.tokens, options.layout == "padded", dtype);
  bench::TrainingState state(m, trainable, dtype, options.optimizer);
  const double flops = model::model_flops(m, input.batch.sizes, trainable).total();
  StepUnderTest step(options, m, trainable, input.batch, state);
  const Measured measured = measure(step, options.steps, bf16, flops);
  const double mib = 1.0 / (1 << 20);
  const auto* cache = model::cpu_allocator();
  fmt::print(
      "{}\nmmkit {} {:.0f}M {} {} trained={} recompute={}{}: {} real of {} tokens, {} pictures, {} "
      "targets; "
      "step "
      "{:.0f} ms, {:.0f} real "
      "tokens/s, {:.1f} GFLOP, {:.3f} of the fp32 and {:.3f} of the {} GEMM rate; memory: process "
      "+{:.0f} MiB, tensors "
      "{:.0f} MiB at most; bytes a parameter: {}\n",
      bench::hardware(), options.shape, elements / 1e6, options.dtype, options.layout,
      options.train, options.recompute, options.optimizer ? " AdamW" : "", input.batch.sizes.tokens,
      input.computed_tokens, input.batch.sizes.images, input.batch.sizes.targets,
      bench::median(measured.times) * 1e3,
      static_cast<double>(input.batch.sizes.tokens) / bench::median(measured.times), flops / 1e9,
      bench::median(measured.wide_shares), bench::median(measured.own_shares), options.dtype,
      static_cast<double>(bench::peak_resident_bytes() - resident) * mib,
      cache == nullptr ? 0.0 : static_cast<double>(cache->counts().peak_live_bytes) * mib,
      state.bytes_per_parameter());
}

void declare_options(CLI::App& app, Options& options) {
  bench::add_choice(app, "--shape", options.shape, "50m or 300m", {"50m", "300m"});
  bench::add_choice(app, "--layout", options.layout, "packed, or padded to the longest sample",
                    {"packed", "padded"});
  bench::add_choice(app, "--train", options.train, "all, or not-tower", {"all", "not-tower"});
  bench::add_choice(app, "--recompute", options.recompute,
                    "Run again in the backward instead of keeping it: none, selective (the mlp of "
                    "decoder layers), or block",
                    {"none", "selective", "block"});
  bench::add_steps(app, options.steps);
  bench::add_number<int64_t>(app, "--tokens", options.tokens, "Real tokens at most", 128, 65536);
  bench::add_threads(app, options.threads);
  bench::add_dtype(app, options.dtype);
  app.add_flag("--optimizer", options.optimizer,
               "With AdamW, masters and moments, as a run has them");
  app.add_flag("!--system-allocator", options.own_allocator,
               "Leave tensor memory to the C library");
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main<Options>(
      {argc, argv, "bench_llava",
       "Processor time and memory of a LLaVA training step (forward, backward, and AdamW with "
       "--optimizer) beside the GEMM rate of the same run.\n"
       "Example: bench_llava --shape 300m --dtype bf16 --layout padded"},
      declare_options, run_bench);
}
