#include <fmt/format.h>

#include <string>
#include <vector>

#include "lib/model/cpu_allocator.h"
#include "tools/bench_dit/dit_case.h"
#include "tools/bench_dit/dit_options.h"
#include "tools/bench_llava/process_cost.h"
#include "tools/bench_main.h"

namespace {

using namespace mm;

struct Options {
  bench::DitShape shape;
  int64_t pictures = 4, side = 32;
  std::string dtype = "fp32";
  int steps = 5;
  int threads = 1;
};

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

void run_bench(const Options& asked) {
  Options options = asked;
  options.shape.bf16 = options.dtype == "bf16";
  options.shape.sample_size = options.side;
  bench::start_tensors(options.threads);
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
      options.side, bench::median(m.steps) * 1e3, bench::median(m.gradients) * 1e3,
      bench::median(m.update) * 1e3, m.flops * 1e-9, bench::median(m.own), options.dtype,
      bench::median(m.wide), static_cast<double>(bench::peak_resident_bytes() - resident) * mib,
      static_cast<double>(model::cpu_allocator()->counts().peak_live_bytes) * mib);
}

void declare_options(CLI::App& app, Options& options) {
  bench::add_dtype(app, options.dtype);
  bench::add_number<int64_t>(app, "--pictures", options.pictures, "Pictures a step", 1, 1024);
  bench::add_number<int64_t>(app, "--side", options.side, "Side of the latents, even", 2, 512);
  bench::add_dit_shape(app, options.shape);
  bench::add_steps(app, options.steps);
  bench::add_threads(app, options.threads);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main<Options>(
      {argc, argv, "bench_dit",
       "Processor time and memory of a DiT training step (DiT-S/2 unless told otherwise) beside "
       "the "
       "GEMM rate of the same run.\nExample: bench_dit --dtype bf16 --pictures 8"},
      declare_options, run_bench);
}
