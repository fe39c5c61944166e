#include <fmt/format.h>

#include <cstdio>

#include "tests/kernels/device_memory.h"
#include "tests/kernels/device_twins.h"

// The shared cases of twins_test.cpp on a device, and what each kernel moves or computes a second
// on large arrays. Exit codes: 0 all within tolerance, 1 some outside, 69 the device failed, 77
// there is none.
namespace {

using namespace mm::kernels;
using namespace mm::kernels::test;

constexpr int64_t kElements = int64_t{1} << 26;
constexpr int kRounds = 20;

struct Line {
  const char* kernel;
  const char* dtype;
  double error, tolerance;
  double ms = 0, work = 0;  ///< bytes, or FLOP
  const char* unit = "GB/s";
};

bool print(const Line& line, double copy_rate) {
  const bool good = line.error <= line.tolerance;
  const double rate = line.ms > 0 ? line.work / line.ms * 1e-6 : 0;
  fmt::print("{:<24} {:<5} error {:.2e} of {:.0e} allowed: {}; {:.0f} {}", line.kernel, line.dtype,
             line.error, line.tolerance, good ? "ok" : "OUTSIDE", rate, line.unit);
  if (std::string_view(line.unit) == "GB/s") fmt::print(", {:.2f} of a copy", rate / copy_rate);
  fmt::print("\n");
  return good;
}

double copy_rate() {
  DeviceArrays d;
  auto *from = d.make<float>(kElements), *to = d.make<float>(kElements);
  const double ms = device_ms(kRounds, [&] {
    cuda_check(
        cudaMemcpyAsync(to, from, kElements * sizeof(float), cudaMemcpyDeviceToDevice, nullptr));
  });
  return 2.0 * kElements * sizeof(float) / ms * 1e-6;
}

template <typename T>
constexpr const char* kName = std::is_same_v<T, float> ? "fp32" : "bf16";

template <typename T>
Line check_rms_norm() {
  DeviceArrays d;
  const Shape shape{kElements / 4096, 4096};
  const RmsNormForward<T> p{
      d.make<T>(kElements),     nullptr, d.make<T>(4096), 1e-5, nullptr, d.make<T>(kElements),
      d.make<float>(shape.rows)};
  const auto launch = pick<T>(mm_rms_norm_forward_cuda_f32, mm_rms_norm_forward_cuda_bf16);
  return {"rms_norm + residual",
          kName<T>,
          rms_norm_error(device_rms_norm<T>(), {300, 1000}, true),
          kTolerance<T>,
          device_ms(kRounds, [&] { cuda_check(launch(shape, p, nullptr)); }),
          2.0 * kElements * sizeof(T)};
}

template <typename T>
Line check_swiglu() {
  DeviceArrays d;
  const T *gate = d.make<T>(kElements), *up = d.make<T>(kElements);
  T* y = d.make<T>(kElements);
  const auto launch = pick<T>(mm_swiglu_forward_cuda_f32, mm_swiglu_forward_cuda_bf16);
  return {"swiglu",
          kName<T>,
          swiglu_error(device_swiglu<T>(), 100003),
          kTolerance<T>,
          device_ms(kRounds, [&] { cuda_check(launch(kElements, gate, up, y, nullptr)); }),
          3.0 * kElements * sizeof(T)};
}

template <typename T>
Line check_quick_gelu() {
  DeviceArrays d;
  const T* x = d.make<T>(kElements);
  T* y = d.make<T>(kElements);
  const auto launch = pick<T>(mm_quick_gelu_forward_cuda_f32, mm_quick_gelu_forward_cuda_bf16);
  return {"quick_gelu",
          kName<T>,
          quick_gelu_error(device_quick_gelu<T>(), 100003),
          kTolerance<T>,
          device_ms(kRounds, [&] { cuda_check(launch(kElements, x, y, nullptr)); }),
          2.0 * kElements * sizeof(T)};
}

template <typename T>
Line check_gelu_tanh() {
  DeviceArrays d;
  const T* x = d.make<T>(kElements);
  T* y = d.make<T>(kElements);
  const auto launch = pick<T>(mm_gelu_tanh_forward_cuda_f32, mm_gelu_tanh_forward_cuda_bf16);
  return {"gelu_tanh",
          kName<T>,
          gelu_tanh_error(device_gelu_tanh<T>(), 100003),
          kTolerance<T>,
          device_ms(kRounds, [&] { cuda_check(launch(kElements, x, y, nullptr)); }),
          2.0 * kElements * sizeof(T)};
}

template <typename T>
Line check_ada_norm() {
  DeviceArrays d;
  const int64_t cols = 1152, rows = 256;
  const PictureRows shape{kElements / (cols * rows), rows, cols, 6 * cols};
  T* modulation = d.make<T>(shape.pictures * shape.stride);
  const ModulatedNormForward<T> p{d.make<T>(kElements),
                                  modulation,
                                  modulation + cols,
                                  1e-6,
                                  d.make<T>(kElements),
                                  d.make<float>(shape.pictures * rows),
                                  d.make<float>(shape.pictures * rows)};
  const auto launch =
      pick<T>(mm_modulated_norm_forward_cuda_f32, mm_modulated_norm_forward_cuda_bf16);
  return {"modulated norm, gated sum",
          kName<T>,
          ada_norm_error(device_ada_norm<T>(), {3, 300, 1000, 2000}),
          kTolerance<T>,
          device_ms(kRounds, [&] { cuda_check(launch(shape, p, nullptr)); }),
          2.0 * static_cast<double>(shape.pictures * rows * cols) * sizeof(T)};
}

template <typename T>
Line check_rope() {
  DeviceArrays d;
  const RopeShape shape{kElements / 4096, 32, 64, 1};
  const T* x = d.make<T>(kElements);
  const float *cos = d.make<float>(shape.tokens * 64), *sin = d.make<float>(shape.tokens * 64);
  T* y = d.make<T>(kElements);
  const auto launch = pick<T>(mm_rope_cuda_f32, mm_rope_cuda_bf16);
  return {"rope",
          kName<T>,
          rope_error(device_rope<T>(), {100, 3, 40, 1}),
          kTolerance<T>,
          device_ms(kRounds, [&] { cuda_check(launch(shape, x, cos, sin, y, nullptr)); }),
          2.0 * kElements * sizeof(T)};
}

template <typename T>
Line check_cross_entropy() {
  DeviceArrays d;
  const Shape shape{kElements / 32768, 32768};
  const std::vector<int64_t> targets(shape.rows, 5);
  T* logits = d.make<T>(kElements);
  cuda_check(cudaMemset(logits, 0, kElements * sizeof(T)));
  const CrossEntropyRows<T> p{logits, d.in(targets.data(), shape.rows), nullptr,
                              d.make<float>(shape.rows), logits};
  const auto launch = pick<T>(mm_cross_entropy_rows_cuda_f32, mm_cross_entropy_rows_cuda_bf16);
  return {"cross_entropy_rows",
          kName<T>,
          cross_entropy_error(device_cross_entropy<T>(), {50, 5003}, true),
          kTolerance<T>,
          device_ms(kRounds, [&] { cuda_check(launch(shape, p, nullptr)); }),
          3.0 * kElements * sizeof(T)};
}

template <typename C>
Line check_adamw() {
  DeviceArrays d;
  const AdamWArrays<float, C> p{d.make<float>(kElements), d.make<float>(kElements),
                                d.make<float>(kElements), d.make<float>(kElements),
                                d.make<C>(kElements)};
  const auto launch = pick<C>(mm_adamw_cuda_f32, mm_adamw_cuda_bf16);
  const auto constants = adamw_constants<float>({.rate = 1e-3});
  return {"adamw, copy in",
          kName<C>,
          adamw_error(device_adamw<C>(), 100003),
          kTolerance<float>,
          device_ms(kRounds, [&] { cuda_check(launch(kElements, p, constants, nullptr)); }),
          kElements * (28.0 + sizeof(C))};
}

template <typename T>
Line check_attention() {
  const std::vector<int64_t> borders{0, 33, 33, 34, 150}, large{0, 2048, 4096};
  DeviceArrays d;
  PackedAttentionShape s{
      .tokens = 4096, .heads = 16, .kv_heads = 16, .head_size = 64, .samples = 2};
  s.scale = 0.125;
  const int64_t n = s.tokens * s.heads * s.head_size;
  const PackedAttentionForward<T> p{d.make<T>(n), d.make<T>(n),
                                    d.make<T>(n), d.in(large.data(), 3),
                                    d.make<T>(n), d.make<float>(s.tokens * s.heads)};
  const auto launch =
      pick<T>(mm_packed_attention_forward_cuda_f32, mm_packed_attention_forward_cuda_bf16);
  const double pairs = 2.0 * 2048 * 2049 / 2 * static_cast<double>(s.heads);
  return {"packed_attention",
          kName<T>,
          packed_attention_error(device_packed_attention<T>(), attention_shape(borders), borders),
          2 * kTolerance<T>,
          device_ms(kRounds, [&] { cuda_check(launch(s, p, nullptr)); }),
          pairs * 4 * 64,
          "GFLOP/s"};
}

template <typename T>
bool check_all(double copy) {
  bool good = print(check_rms_norm<T>(), copy);
  for (const auto& check :
       {check_swiglu<T>, check_quick_gelu<T>, check_gelu_tanh<T>, check_ada_norm<T>, check_rope<T>,
        check_cross_entropy<T>, check_adamw<T>, check_attention<T>})
    good = print(check(), copy) && good;
  return good;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("device check: no GPU that CUDA can use; nothing was checked");
    return 77;
  }
  try {
    cudaDeviceProp properties{};
    cuda_check(cudaGetDeviceProperties(&properties, 0));
    const double copy = copy_rate();
    fmt::print("{} (sm_{}{}): a copy moves {:.0f} GB/s\n", properties.name, properties.major,
               properties.minor, copy);
    const bool wide = check_all<float>(copy), narrow = check_all<Bf16>(copy);
    return wide && narrow ? 0 : 1;
  } catch (const mm::Error& error) {
    fmt::print(stderr, "device check: {}\n", error.what());
    return 69;
  }
}
