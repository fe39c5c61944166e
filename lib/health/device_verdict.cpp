#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "lib/health/device_tests.h"

namespace mm::health {
namespace {

// Chips of one kind differ by a few percent in clock and temperature.
constexpr double kFellow = 0.9;

using Field = std::optional<double> DeviceTest::*;

struct Rate {
  const char* where;
  const char* unit;
  Field field;
  std::optional<double> expected;
};

Finding bad(const char* code, std::string where, std::string what, std::string evidence) {
  return {.level = Level::kBad,
          .code = code,
          .where = std::move(where),
          .what = std::move(what),
          .evidence = std::move(evidence),
          .action = "exclude the node; drain it for a check of the GPU"};
}

class Judge {
 public:
  Judge(const DeviceTests& tests, const Expectation& expected) : tests_(tests), e_(expected) {}

  std::vector<Finding> judge() {
    for (size_t i = 0; i < tests_.devices.size(); ++i) {
      const DeviceTest& one = tests_.devices[i];
      if (!one.problem.empty()) {
        findings_.push_back(bad("F17", label(i), "does not compute", one.problem));
      } else {
        fellows_[one.name].push_back(i);
      }
    }
    for (const auto& [name, members] : fellows_) judge_bits(members);
    const auto& speed = e_.speed;
    for (const Rate& rate :
         {Rate{"bf16 product", "TFLOP/s", &DeviceTest::gemm_tflop_s, speed.gpu_gemm_tflop_s},
          Rate{"memory copy", "GB/s", &DeviceTest::memory_copy_gb_s, speed.gpu_memory_copy_gb_s},
          Rate{"copy to device", "GB/s", &DeviceTest::to_device_gb_s, speed.to_device_gb_s},
          Rate{"copy to host", "GB/s", &DeviceTest::to_host_gb_s, speed.to_host_gb_s}})
      for (const auto& [name, members] : fellows_) judge_rate(rate, members);
    return std::move(findings_);
  }

 private:
  std::string label(size_t index) const {
    return tests_.devices[index].name == "all GPUs" ? "all GPUs" : fmt::format("GPU {}", index);
  }

  void judge_bits(std::vector<size_t> members) {
    std::erase_if(members, [&](size_t i) {
      if (tests_.devices[i].hash != 0) return false;
      findings_.push_back(not_checked(label(i) + " compute", "too little of its memory was free"));
      return true;
    });
    if (members.empty()) return;
    std::map<uint64_t, size_t> votes;
    for (const size_t i : members) ++votes[tests_.devices[i].hash];
    const auto most =
        std::max_element(votes.begin(), votes.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    // Of two that differ nobody knows which one is right.
    const bool majority = 2 * most->second > members.size();
    bool good = true;
    for (const size_t i : members) {
      const DeviceTest& one = tests_.devices[i];
      if (!one.steady) {
        findings_.push_back(
            bad("F55", label(i), "computes other bits from one product to the next", ""));
      } else if (!majority) {
        findings_.push_back(bad("F55", label(i), "the GPUs compute different bits",
                                fmt::format("{} results among {}", votes.size(), members.size())));
      } else if (one.hash != most->first) {
        findings_.push_back(bad("F55", label(i), "computes other bits than the other GPUs",
                                fmt::format("{} GPUs agree", most->second)));
      } else {
        continue;
      }
      good = false;
    }
    if (good)
      findings_.push_back(
          ok("GPU compute",
             fmt::format("{} {}: {}", members.size(), tests_.devices[members.front()].name,
                         members.size() > 1 ? "equal bits" : "steady bits")));
  }

  // What a GPU is held against: the middle, or of two the better one.
  double usual(const Rate& rate, const std::vector<size_t>& members) const {
    std::vector<double> values;
    for (const size_t i : members)
      if (const auto value = tests_.devices[i].*rate.field) values.push_back(*value);
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
  }

  void judge_rate(const Rate& rate, const std::vector<size_t>& members) {
    const double middle = usual(rate, members);
    std::vector<double> good;
    size_t missing = 0;
    for (const size_t i : members) {
      const auto value = tests_.devices[i].*rate.field;
      const std::string where = label(i) + " " + rate.where;
      if (!value) {
        ++missing;
      } else if (rate.expected && *value < (1 - e_.speed.tolerance) * *rate.expected) {
        findings_.push_back(bad("F56", where, "slower than expected",
                                fmt::format("{:.1f} {}, {:.0f} % of {:.1f}", *value, rate.unit,
                                            100 * *value / *rate.expected, *rate.expected)));
      } else if (*value < kFellow * middle) {
        findings_.push_back(bad("F05", where, "slower than the other GPUs",
                                fmt::format("{:.1f} {}, {:.0f} % of {:.1f}", *value, rate.unit,
                                            100 * *value / middle, middle)));
      } else {
        good.push_back(*value);
      }
    }
    if (missing > 0)
      findings_.push_back(not_checked(std::string("GPU ") + rate.where, "not measured"));
    if (good.empty()) return;
    const auto [low, high] = std::minmax_element(good.begin(), good.end());
    findings_.push_back(
        ok(std::string("GPU ") + rate.where,
           fmt::format("{:.1f} to {:.1f} {}{}", *low, *high, rate.unit,
                       rate.expected ? fmt::format(", expected {:.1f}", *rate.expected)
                                     : " (no expectation to judge by)")));
  }

  const DeviceTests& tests_;
  const Expectation& e_;
  std::map<std::string, std::vector<size_t>> fellows_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> judge_devices(const DeviceTests& tests, const Expectation& expected) {
  if (!tests.checked) return {not_checked("GPU compute", tests.problem)};
  return Judge(tests, expected).judge();
}

}  // namespace mm::health
