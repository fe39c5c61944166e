#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "lib/model/attention_product.h"
#include "lib/model/cpu_allocator.h"
#include "lib/model/fused_attention.h"
#include "tools/bench_llava/process_cost.h"
#include "tools/bench_main.h"

namespace {

using namespace mm;

struct Options {
  std::string dtype = "fp32";
  int steps = 5;
  int threads = 1;
};

/// Samples of one row; lengths are all `longest`, or spread evenly from `shortest` to it.
struct Row {
  const char* name;
  int64_t samples, shortest, longest, heads, kv_heads, head_size;
  bool causal;
};
const std::vector<Row> kRows = {
    {"ViT-B/16, 224 px", 8, 196, 196, 12, 12, 64, false},
    {"CLIP ViT-L/14, 336 px", 2, 577, 577, 16, 16, 64, false},
    {"DiT-S/2, 32 x 32", 4, 256, 256, 6, 6, 64, false},
    {"quick start, 20 to 150", 16, 20, 150, 4, 4, 64, true},
    {"Llama heads, 300 to 1,000", 2, 300, 1000, 8, 8, 128, true},
    {"Qwen2 heads, 300 to 1,000", 2, 300, 1000, 14, 2, 64, true},
    {"Llama 3 heads, 2,048", 1, 2048, 2048, 8, 2, 128, true},
};

struct Case {
  std::vector<int64_t> borders{0};
  at::Tensor q, k, v, d_out;
  double pairs = 0;  ///< query-key pairs, all heads
};

Case make_case(const Row& row, at::ScalarType dtype) {
  Case c;
  for (int64_t i = 0; i < row.samples; ++i) {
    const int64_t length =
        row.longest - i * (row.longest - row.shortest) / std::max<int64_t>(1, row.samples - 1);
    c.borders.push_back(c.borders.back() + length);
    const auto n = static_cast<double>(length);
    c.pairs += static_cast<double>(row.heads) * (row.causal ? n * (n + 1) / 2 : n * n);
  }
  at::manual_seed(1);
  const auto draw = [&](int64_t heads) {
    return at::randn({c.borders.back(), heads, row.head_size}).to(dtype);
  };
  c.q = draw(row.heads).requires_grad_();
  c.k = draw(row.kv_heads).requires_grad_();
  c.v = draw(row.kv_heads).requires_grad_();
  c.d_out = draw(row.heads).flatten(1);
  return c;
}

/// LibTorch's kernel on one sample at a time: no padding, which is to its favour.
at::Tensor by_libtorch(const Case& c, bool causal) {
  std::vector<at::Tensor> outputs;
  for (size_t i = 1; i < c.borders.size(); ++i) {
    const auto rows = [&](const at::Tensor& x) {
      return x.narrow(0, c.borders[i - 1], c.borders[i] - c.borders[i - 1])
          .unsqueeze(0)
          .transpose(1, 2);
    };
    outputs.push_back(model::attention_product(rows(c.q), rows(c.k), rows(c.v), {.causal = causal})
                          .transpose(1, 2)
                          .squeeze(0)
                          .flatten(1));
  }
  return at::cat(outputs);
}

struct Times {
  std::vector<double> forward, backward;
};

template <typename F>
void measure(const Case& c, F&& attend, Times& times) {
  const double start = bench::processor_s();
  const at::Tensor out = attend();
  const double middle = bench::processor_s();
  (void)torch::autograd::grad({out}, {c.q, c.k, c.v}, {c.d_out});
  times.forward.push_back(middle - start);
  times.backward.push_back(bench::processor_s() - middle);
}

void run_row(const Row& row, const Options& options) {
  const Case c = make_case(row, options.dtype == "bf16" ? at::kBFloat16 : at::kFloat);
  Times fused, libtorch;
  std::vector<double> rates;
  for (int step = 0; step < options.steps; ++step) {
    rates.push_back(bench::gemm_rate(false, 0.1));
    measure(
        c, [&] { return model::fused_attention(c.q, c.k, c.v, c.borders, {.causal = row.causal}); },
        fused);
    measure(
        c, [&] { return by_libtorch(c, row.causal); }, libtorch);
  }
  const double flops = c.pairs * static_cast<double>(row.head_size), rate = bench::median(rates);
  const double forward = bench::median(fused.forward), backward = bench::median(fused.backward),
               forward_of = bench::median(libtorch.forward),
               backward_of = bench::median(libtorch.backward);
  fmt::print(
      "| {} | {:.1f} ms, {:.2f} | {:.1f} ms, {:.2f} | {:.1f} ms | {:.1f} ms | {:.2f} | {:.2f} |\n",
      row.name, forward * 1e3, 4 * flops / forward / rate, backward * 1e3,
      10 * flops / backward / rate, forward_of * 1e3, backward_of * 1e3, forward_of / forward,
      backward_of / backward);
}

void run_bench(const Options& options) {
  bench::start_tensors(options.threads);
  model::install_cpu_allocator(int64_t{1} << 30);
  fmt::print(
      "{}\nProcessor time; shares of the fp32 GEMM rate count pairs that see each other.\n\n",
      bench::hardware());
  if (!model::has_fused_attention(
          at::empty({1, 1, 8}, options.dtype == "bf16" ? at::kBFloat16 : at::kFloat)))
    throw UsageError("this CPU multiplies bf16: LibTorch's attention is used; take --dtype fp32");
  fmt::print(
      "| {}, samples | fused forward, share of GEMM | fused backward, share | LibTorch forward | "
      "LibTorch backward | forward faster | backward faster |\n| --- | --- | --- | --- | --- | --- "
      "| "
      "--- |\n",
      options.dtype);
  for (const Row& row : kRows) run_row(row, options);
}

void declare_options(CLI::App& app, Options& options) {
  bench::add_dtype(app, options.dtype);
  bench::add_steps(app, options.steps);
  bench::add_threads(app, options.threads);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main<Options>(
      {argc, argv, "bench_attention",
       "Processor time of packed attention, forward and backward: the fused op beside LibTorch's "
       "kernel and the GEMM rate of the same run.\nExample: bench_attention --dtype bf16"},
      declare_options, run_bench);
}
