#include <doctest/doctest.h>

#include "tests/health/planted_node.h"

using namespace mm::health;

namespace {

// A report in which nothing is wrong and everything is known.
NodeReport good() {
  NodeReport report;
  report.memory = {uint64_t{8} << 30, uint64_t{4} << 30, std::nullopt, true};
  report.disks = {{"/store", uint64_t{100} << 30, uint64_t{50} << 30, 1000, false, false, ""}};
  report.ports = {{"eth0", "up", 1000}};
  report.clock_synchronised = true;
  report.gpus.checked = true;
  report.gpus.driver = "1.0";
  report.gpus.devices = {{"g", "u", 1, 0, ""}};
  return report;
}

size_t count(const NodeReport& report, Verdict verdict) {
  size_t found = 0;
  for (const NodeFinding& one : judge_node(report, {})) found += one.verdict == verdict ? 1 : 0;
  return found;
}

}  // namespace

TEST_CASE("node verdict: a good node has five good findings") {
  CHECK(count(good(), Verdict::kOk) == 5);
}

TEST_CASE("node verdict: each fault makes exactly one finding bad") {
  const auto bad_with = [](auto&& spoil) {
    NodeReport report = good();
    spoil(report);
    return count(report, Verdict::kBad);
  };
  CHECK(bad_with([](NodeReport& r) { r.memory.available_bytes = 1; }) == 1);
  CHECK(bad_with([](NodeReport& r) { r.disks[0].read_only = true; }) == 1);
  CHECK(bad_with([](NodeReport& r) { r.disks[0].problem = "no answer within 3000 ms"; }) == 1);
  CHECK(bad_with([](NodeReport& r) { r.disks[0].free_bytes = 1; }) == 1);
  CHECK(bad_with([](NodeReport& r) { r.ports[0].state = "down"; }) == 1);
  CHECK(bad_with([](NodeReport& r) { r.gpus.devices[0].problem = "lost"; }) == 1);
}

TEST_CASE("node verdict: what is not known is not checked, neither good nor bad") {
  NodeReport report = good();
  report.memory = {};
  report.ports.clear();
  report.clock_synchronised.reset();
  report.gpus = {};
  CHECK(count(report, Verdict::kBad) == 0);
  CHECK(count(report, Verdict::kNotChecked) == 4);
}
