#include "lib/probe/device_bench.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <span>
#include <thread>

#include "lib/base/clock.h"
#include "lib/base/hash.h"

namespace mm::probe {
namespace {

constexpr int kBatch = 10;  // products between two looks at the clock

double now_s() { return system_clock().monotonic_s(); }

// [side, side] bf16 between -0.5 and 0.5, the same everywhere.
at::Tensor numbers(int64_t side, uint32_t seed) {
  at::Tensor values = at::empty({side, side}, at::kFloat);
  for (float& value :
       std::span(values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel()))) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<float>(seed >> 8) / float(1 << 24) - 0.5F;
  }
  return values.to(at::kBFloat16);
}

uint64_t hash_of(const at::Tensor& values) {
  const at::Tensor host = values.to(at::kCPU).contiguous();
  return xxh3_64(std::span(static_cast<const std::byte*>(host.const_data_ptr()),
                           static_cast<size_t>(host.nbytes())));
}

// One device, from whatever thread.
class Bench {
 public:
  Bench(c10::Device device, const DeviceBenchOptions& options)
      : device_(device), options_(options), guard_(device.type()) {}

  void measure_product(const at::Tensor& a, const at::Tensor& b, health::DeviceTest& test) {
    const at::NoGradGuard no_grad;
    const c10::DeviceGuard on(device_);
    const at::Tensor x = a.to(device_), y = b.to(device_);
    const at::Tensor first = at::matmul(x, y);
    test.hash = hash_of(first);
    const double flop = 2.0 * static_cast<double>(options_.side) *
                        static_cast<double>(options_.side) * static_cast<double>(options_.side);
    double spent_s = 0;
    int64_t products = 0;
    // Every batch's last product must agree: a device that errs now and then is sick too.
    while (spent_s < options_.seconds && test.steady) {
      at::Tensor last;
      const double start_s = now_s();
      for (int i = 0; i < kBatch; ++i) last = at::matmul(x, y);
      wait();
      spent_s += now_s() - start_s;
      products += kBatch;
      test.steady = at::equal(last, first);
    }
    if (products > 0 && spent_s > 0)
      test.gemm_tflop_s = 1e-12 * flop * static_cast<double>(products) / spent_s;
  }

  void measure_copies(health::DeviceTest& test) {
    const at::NoGradGuard no_grad;
    const c10::DeviceGuard on(device_);
    const auto bytes = at::TensorOptions().dtype(at::kByte);
    const at::Tensor here = at::zeros({options_.copy_bytes}, bytes.device(device_));
    at::Tensor there = at::zeros({options_.copy_bytes}, bytes.device(device_));
    at::Tensor host =
        at::empty({options_.copy_bytes}, bytes.pinned_memory(device_.type() != c10::kCPU));
    host.zero_();
    // Read and written.
    test.memory_copy_gb_s = 2 * rate([&] { there.copy_(here, /*non_blocking=*/true); });
    test.to_device_gb_s = rate([&] { there.copy_(host, /*non_blocking=*/true); });
    test.to_host_gb_s = rate([&] { host.copy_(there, /*non_blocking=*/true); });
  }

 private:
  void wait() const {
    if (device_.type() != c10::kCPU) guard_.synchronizeDevice(device_.index());
  }

  double rate(const std::function<void()>& copy) const {
    copy();
    wait();
    int64_t copies = 0;
    const double start_s = now_s();
    do {
      for (int i = 0; i < kBatch; ++i) copy();
      wait();
      copies += kBatch;
    } while (now_s() - start_s < options_.seconds / 5);
    return 1e-9 * static_cast<double>(copies * options_.copy_bytes) / (now_s() - start_s);
  }

  c10::Device device_;
  const DeviceBenchOptions& options_;
  c10::impl::VirtualGuardImpl guard_;
};

// A device's own failure, as text; nothing if it went well, or was not measured.
std::string failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const c10::OutOfMemoryError&) {
    return "";  // others hold the memory: no fault of the device
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::string name_of(c10::Device device) {
  if (device.type() == c10::kCPU) return "CPU";
  // Which chip it is, NVML says; those of one node are of one kind, which the verdict checks.
  return "GPU";
}

int device_count(c10::DeviceType type) {
  if (type == c10::kCPU) return 1;
  if (!c10::impl::hasDeviceGuardImpl(type)) return 0;
  return c10::impl::VirtualGuardImpl(type).deviceCount();
}

}  // namespace

health::DeviceTests bench_devices(c10::DeviceType type, const DeviceBenchOptions& options) {
  const int count = device_count(type);
  if (count == 0) {
    const bool built = type == c10::kCPU || at::hasCUDA() || c10::impl::hasDeviceGuardImpl(type);
    return {.problem = built ? "LibTorch finds no GPU" : "this LibTorch has no CUDA"};
  }
  health::DeviceTests tests{.checked = true};
  const at::Tensor a = numbers(options.side, 1), b = numbers(options.side, 2);
  std::vector<std::thread> threads;
  tests.devices.resize(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      const c10::Device device(type, static_cast<c10::DeviceIndex>(i));
      health::DeviceTest& test = tests.devices[static_cast<size_t>(i)];
      test.name = name_of(device);
      test.problem = failure_of([&] { Bench(device, options).measure_product(a, b, test); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < count; ++i) {
    health::DeviceTest& test = tests.devices[static_cast<size_t>(i)];
    if (!test.problem.empty()) continue;
    const c10::Device device(type, static_cast<c10::DeviceIndex>(i));
    test.problem = failure_of([&] { Bench(device, options).measure_copies(test); });
  }
  return tests;
}

}  // namespace mm::probe
