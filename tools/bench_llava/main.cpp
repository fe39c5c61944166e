#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <vector>

#include "lib/base/error.h"
#include "lib/model/eager.h"
#include "lib/model/flops.h"
#include "lib/model/llava.h"
#include "lib/run/gemm_rate.h"
#include "tools/bench_llava/bench_batch.h"

namespace {

using namespace mm;

struct Options {
  int steps = 7;
  int64_t tokens = 2048;
  int threads = 1;
  std::string dtype = "fp32";
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// One row of the table: what is trained, step time, model FLOPs and their share of the GEMM rate.
void measure(const model::Model& m, const std::vector<bool>& trainable, const Options& options,
             const char* name) {
  const auto dtype = options.dtype == "bf16" ? at::kBFloat16 : at::kFloat;
  const model::Batch batch = bench::bench_batch(bench::bench_config(), options.tokens, dtype);
  std::vector<at::Tensor> values;
  const model::SimpleParams random = model::SimpleParams::random(m, 1, dtype);
  for (size_t i = 0; i < m.params.size(); ++i) values.push_back(random.get(static_cast<int>(i)));
  model::SimpleParams params(m, values, trainable);
  const double flops = model::model_flops(m, batch.sizes, trainable).total();
  std::vector<double> times, shares;
  for (int step = 0; step <= options.steps; ++step) {
    // Rates drift on a shared machine: each step has its own limit, measured beside it.
    const double rate = run::measure_gemm_rate(dtype, 768, 0.1);
    params.clear_grads();
    const auto start = std::chrono::steady_clock::now();
    model::eager_train(
        {m, params, trainable, params, 1.0 / static_cast<double>(batch.sizes.targets)}, batch);
    if (step == 0) continue;
    times.push_back(seconds_since(start));
    shares.push_back(flops / times.back() / rate);
  }
  fmt::print(
      "{:<24} {} tokens {} images {} targets: step {:.0f} ms, {:.1f} GFLOP, {:.3f} of the GEMM "
      "rate\n",
      name, batch.sizes.tokens, batch.sizes.images, batch.sizes.targets, median(times) * 1e3,
      flops / 1e9, median(shares));
}

void run_bench(const Options& options) {
  at::set_num_threads(options.threads);
  at::globalContext().setFlushDenormal(true);
  const model::Model m = model::build_llava(bench::bench_config());
  double elements = 0;
  std::vector<bool> frozen_tower;
  for (const model::ParamSpec& spec : m.params) {
    elements += static_cast<double>(c10::multiply_integers(spec.shape));
    frozen_tower.push_back(spec.part != model::Part::kVision);
  }
  const auto dtype = options.dtype == "bf16" ? at::kBFloat16 : at::kFloat;
  fmt::print("{:.1f} M parameters, {}, {} threads, GEMM rate {:.0f} GFLOP/s\n", elements / 1e6,
             options.dtype, options.threads, mm::run::measure_gemm_rate(dtype) / 1e9);
  measure(m, std::vector<bool>(m.params.size(), true), options, "all trained");
  measure(m, frozen_tower, options, "tower frozen");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Time of a LLaVA training step (forward and backward) beside the GEMM rate of the same "
      "run.\nExample: bench_llava --dtype bf16 --threads 2");
  Options options;
  app.add_option("--steps", options.steps, "Steps measured; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--tokens", options.tokens, "Tokens of the pack")
      ->check(CLI::Range(128, 65536))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Compute threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "fp32 or bf16")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    run_bench(options);
    return 0;
  } catch (const mm::Error& error) {
    fmt::print(stderr, "bench_llava: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
