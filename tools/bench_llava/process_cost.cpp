#include "tools/bench_llava/process_cost.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

namespace mm::bench {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void start_tensors(int threads) {
  at::set_num_threads(threads);
  at::globalContext().setFlushDenormal(true);
}

double processor_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) << 10;
}

double gemm_rate(bool bf16, double seconds) {
  constexpr int64_t kSide = 768;
  const auto dtype = bf16 ? at::kBFloat16 : at::kFloat;
  const at::Tensor a = at::randn({kSide, kSide}).to(dtype), b = at::randn({kSide, kSide}).to(dtype);
  at::Tensor c = at::mm(a, b);
  int64_t products = 0;
  const double start = processor_s();
  double spent = 0;
  while (spent < seconds) {
    at::mm_out(c, a, b);
    ++products;
    spent = processor_s() - start;
  }
  return 2.0 * kSide * kSide * kSide * static_cast<double>(products) / spent;
}

std::string hardware() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, name = "unknown processor", units;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) name = line.substr(line.find(':') + 2);
    if (!line.starts_with("flags")) continue;
    for (const char* flag : {"avx2", "avx512f", "avx512_bf16", "amx_bf16"}) {
      if (line.find(flag) != std::string::npos) units += fmt::format(" {}", flag);
    }
    break;
  }
  return fmt::format("{} ({}), LibTorch {}, {} thread(s)", name,
                     units.empty() ? "no vector units" : units.substr(1), TORCH_VERSION,
                     at::get_num_threads());
}

}  // namespace mm::bench
