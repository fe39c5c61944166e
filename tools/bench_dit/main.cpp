#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/model/cpu_allocator.h"
#include "tools/bench_dit/dit_case.h"
#include "tools/bench_llava/process_cost.h"

namespace {

using namespace mm;

struct Options {
  bench::DitShape shape;
  int64_t pictures = 4, side = 32;
  std::string dtype = "fp32";
  int steps = 5;
  int threads = 1;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Processor seconds of the measured steps, and their shares of the GEMM rates beside them.
struct Measured {
  double flops = 0;  ///< of forward and backward
  std::vector<double> gradients, update, steps, own, wide;
};

Measured measure(bench::DitCase& dit, const Options& options) {
  const bool bf16 = options.shape.bf16;
  const model::Batch batch = bench::random_latents(options.pictures, options.side, options.side);
  const double flops = dit.flops(batch), seed = 1.0 / static_cast<double>(options.pictures);
  Measured m{.flops = flops};
  for (int step = 0; step <= options.steps; ++step) {
    // Rates drift on a shared machine: each step has its own limits, measured beside it.
    const double wide = bench::gemm_rate(false, 0.2),
                 own = bf16 ? bench::gemm_rate(true, 0.2) : wide;
    const double start = bench::processor_s();
    dit.gradients(batch, seed);
    const double middle = bench::processor_s();
    dit.update();
    const double end = bench::processor_s();
    if (step == 0) continue;
    m.gradients.push_back(middle - start);
    m.update.push_back(end - middle);
    m.steps.push_back(end - start);
    m.own.push_back(flops / (middle - start) / own);
    m.wide.push_back(flops / (middle - start) / wide);
  }
  return m;
}

void run_bench(Options options) {
  options.shape.bf16 = options.dtype == "bf16";
  options.shape.sample_size = options.side;
  at::set_num_threads(options.threads);
  at::globalContext().setFlushDenormal(true);
  model::install_cpu_allocator(int64_t{1} << 30);
  (void)bench::gemm_rate(options.shape.bf16, 0.1);
  const int64_t resident = bench::resident_bytes();
  bench::DitCase dit(options.shape);
  const Measured m = measure(dit, options);
  const double mib = 1.0 / (1 << 20);
  fmt::print("{}\n", bench::hardware());
  fmt::print(
      "mmkit DiT {:.1f}M {}, {} pictures of {} x {} latents: step {:.0f} ms (forward and backward "
      "{:.0f}, AdamW {:.0f}), {:.1f} GFLOP, forward and backward at {:.3f} of the {} and {:.3f} of "
      "the fp32 GEMM rate; memory: process +{:.0f} MiB, tensors {:.0f} MiB at most\n",
      static_cast<double>(dit.parameters()) * 1e-6, options.dtype, options.pictures, options.side,
      options.side, median(m.steps) * 1e3, median(m.gradients) * 1e3, median(m.update) * 1e3,
      m.flops * 1e-9, median(m.own), options.dtype, median(m.wide),
      static_cast<double>(bench::peak_resident_bytes() - resident) * mib,
      static_cast<double>(model::cpu_allocator()->counts().peak_live_bytes) * mib);
}

void declare_options(CLI::App& app, Options& options) {
  app.add_option("--dtype", options.dtype, "Compute dtype, fp32 or bf16")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app.add_option("--pictures", options.pictures, "Pictures a step")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--side", options.side, "Side of the latents, even")
      ->check(CLI::Range(2, 512))
      ->capture_default_str();
  app.add_option("--layers", options.shape.layers, "Transformer layers")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--heads", options.shape.heads, "Heads of 64")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--steps", options.steps, "Steps measured; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Compute threads")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Processor time and memory of a DiT training step (DiT-S/2 unless told otherwise) beside the "
      "GEMM rate of the same run.\nExample: bench_dit --dtype bf16 --pictures 8");
  Options options;
  declare_options(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    run_bench(options);
    return 0;
  } catch (const mm::Error& error) {
    fmt::print(stderr, "bench_dit: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
