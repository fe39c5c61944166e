#include "lib/health/host_report.h"

#include <doctest/doctest.h>

#include "tests/health/h100_node.h"

using namespace mm::health;

namespace {

HostReport good() {
  HostReport host;
  host.usable_cores = 8;
  host.memory = {uint64_t{8} << 30, uint64_t{4} << 30, std::nullopt, true};
  host.numa = {{0, "0-7", uint64_t{8} << 30, {10}}};
  host.controllers = {{"mc0", 3, 0}};
  host.clock_synchronised = true;
  return host;
}

template <typename Spoil>
std::string fault_of(Spoil&& spoil, const Expectation& expected = {}) {
  HostReport host = good();
  spoil(host);
  std::string codes;
  for (const Finding& f : judge_host(host, expected)) codes += f.code;
  return codes;
}

}  // namespace

TEST_CASE("host: a good one has no fault, each fault one code") {
  CHECK(fault_of([](HostReport&) {}) == "");
  CHECK(fault_of([](HostReport& h) { h.memory.available_bytes = 1; }) == "F53");
  CHECK(fault_of([](HostReport& h) { h.controllers[0].uncorrected = 1; }) == "F50");
  CHECK(fault_of([](HostReport& h) { h.controllers[0].corrected = 1'000'000; }) == "F50");
  CHECK(fault_of([](HostReport& h) { h.lustre = "NOT HEALTHY"; }) == "F18");
  CHECK(fault_of([](HostReport& h) { h.lustre = "healthy"; }) == "");
  Expectation expected;
  expected.node.cores_min = 16;
  CHECK(fault_of([](HostReport&) {}, expected) == "F51");
  expected = {};
  expected.clock.required = true;
  CHECK(fault_of([](HostReport& h) { h.clock_synchronised = false; }, expected) == "F37");
  CHECK(fault_of([](HostReport& h) { h.clock_synchronised.reset(); }, expected) == "");
  expected = {};
  expected.node.kernel_min = "5.4";
  CHECK(fault_of([](HostReport& h) { h.kernel = "4.18.0"; }, expected) == "F52");
}

TEST_CASE("host: what is not known is not checked") {
  HostReport host = good();
  host.memory = {};
  host.controllers.clear();
  host.numa.clear();
  host.clock_synchronised.reset();
  size_t open = 0;
  for (const Finding& f : judge_host(host, {})) open += f.level == Level::kNotChecked ? 1 : 0;
  CHECK(open == 4);
}

TEST_CASE("host: a planted tree is read in full") {
  test::H100Node node;
  const HostReport host = read_host(SystemTree(node.root()));
  CHECK(host.usable_cores == 96);
  CHECK(host.numa[1].cpus == "48-95");
  CHECK(host.numa[1].distances == std::vector<int64_t>{21, 10});
  CHECK(host.nvidia_module == "570.124.06");
  CHECK(host.uptime_s == doctest::Approx(500'000.5));
  CHECK(host.boot_unix_ms.has_value());
}
