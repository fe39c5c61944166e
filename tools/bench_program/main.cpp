#include <ATen/Context.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "lib/base/error.h"
#include "tools/bench_program/bench_case.h"
#include "tools/bench_program/pairs.h"

namespace {

using mm::bench::Pair;
using mm::bench::Spread;
using mm::bench::spread_of;

void print_row(const char* name, const std::vector<Pair>& pairs, double mm::bench::Times::*clock) {
  std::vector<double> plain, program, ratio;
  for (const Pair& pair : pairs) {
    plain.push_back(pair.plain.*clock);
    program.push_back(pair.program.*clock);
    ratio.push_back(100 * (program.back() / plain.back() - 1));
  }
  const Spread a = spread_of(plain), b = spread_of(program), r = spread_of(ratio);
  fmt::print("| {:<4} | {:>8.2f} | {:>8.2f} | {:>+7.2f} % | {:+.2f} to {:+.2f} % |\n", name,
             a.median, b.median, r.median, r.low, r.high);
}

void run(const mm::bench::CaseOptions& options, int pairs) {
  mm::bench::BenchCase bench(options);
  const auto measured = mm::bench::run_pairs(
      pairs, [&] { bench.run_plain(); }, [&] { bench.run_program(); });
  fmt::print("{}\n", mm::bench::hardware());
  fmt::print(
      "LLaVA of {:.1f} M parameters, {}, {} micro-batches of {} tokens and {} pictures; {} "
      "instructions; {} pairs\n\n",
      1e-6 * static_cast<double>(bench.parameters()), options.bf16 ? "bf16" : "fp32",
      options.micro_batches, options.tokens, options.images, bench.instructions(), pairs);
  fmt::print(
      "| time | plain ms | program ms | overhead | quartiles of it |\n| --- | --- | --- | --- | "
      "--- |\n");
  print_row("wall", measured, &mm::bench::Times::wall_ms);
  print_row("CPU", measured, &mm::bench::Times::cpu_ms);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Measures what running a training step as a program costs over a plain loop.\n"
      "Example: bench_program --pairs 40 --micro-batches 4");
  mm::bench::CaseOptions options;
  int pairs = 20;
  app.add_option("--pairs", pairs, "interleaved pairs of steps")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--micro-batches", options.micro_batches, "micro-batches a step")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--tokens", options.tokens,
                 "tokens a micro-batch, a multiple of 128 and at least 128 a picture")
      ->capture_default_str()
      ->check(CLI::Range(128, 1 << 20));
  app.add_option("--images", options.images, "pictures a micro-batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_flag("--bf16", options.bf16, "compute in bf16");
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.tokens % 128 != 0 || options.tokens < 128 * options.images) {
      throw mm::UsageError(
          "--tokens {} with --images {}: it must be a multiple of 128 and at least 128 a picture",
          options.tokens, options.images);
    }
    at::globalContext().setFlushDenormal(true);
    run(options, pairs);
  } catch (const mm::Error& error) {
    fmt::print(stderr, "bench_program: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  }
  return 0;
}
