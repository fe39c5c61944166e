#include "lib/health/cpu_features.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/health/system_tree.h"

using namespace mm::health;

TEST_CASE("cpu features: what we find agrees with the kernel's list") {
  const std::string cpuinfo = SystemTree().text("/proc/cpuinfo").value_or("");
  const auto flags = field_of(cpuinfo, "flags");
  if (!flags) return;
  const auto listed = [&](const std::string& flag) {
    return (" " + *flags + " ").find(" " + flag + " ") != std::string::npos;
  };
  const CpuFeatures found = cpu_features();
  CHECK(found.avx2 == listed("avx2"));
  CHECK(found.avx512 ==
        (listed("avx512f") && listed("avx512bw") && listed("avx512dq") && listed("avx512vl")));
  CHECK(found.avx512_bf16 == listed("avx512_bf16"));
  CHECK(found.amx_bf16 == listed("amx_bf16"));
  CHECK(has_fast_bf16() == (found.avx512_bf16 || found.amx_bf16));
}

TEST_CASE("cpu features: names list those present") {
  CHECK(feature_names({}).empty());
  CHECK(feature_names({.avx2 = true, .amx_bf16 = true}) ==
        std::vector<std::string>{"avx2", "amx_bf16"});
}
