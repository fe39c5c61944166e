#include "lib/health/nccl_version.h"

#include <fmt/format.h>

#include "lib/health/guarded_call.h"
#include "lib/health/nvml_library.h"

namespace mm::health {

std::string nccl_version_text(int version) {
  if (version >= 10'000)
    return fmt::format("{}.{}.{}", version / 10'000, version % 10'000 / 100, version % 100);
  return fmt::format("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100);
}

std::string nccl_version(const std::string& library, int deadline_ms) {
  GuardedCall call = GuardedCall::start([&]() -> std::string {
    const NvmlLibrary nccl(library);
    auto* get = nccl.find<int(int*)>("ncclGetVersion");
    int version = 0;
    return get != nullptr && get(&version) == 0 ? nccl_version_text(version) : "";
  });
  const auto answer = call.finish(deadline_ms);
  return answer ? *answer : "";
}

}  // namespace mm::health
