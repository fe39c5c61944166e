#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "lib/health/baseline.h"
#include "tests/health/h100_node.h"

// Faults together, and at the edge of what is still good.

using namespace mm::health;
using mm::health::test::H100Node;

namespace {

struct Fault {
  const char* line;  ///< "BAD F09 mlx5_3 port 1"
  std::function<void(H100Node&)> plant;
};

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> faults = {
      {"BAD F09 mlx5_3 port 1", [](H100Node& n) { n.plant(n.ib(3, "state"), "1: DOWN\n"); }},
      {"BAD F10 mlx5_5 port 1",
       [](H100Node& n) { n.plant(n.ib(5, "counters/link_downed"), "6\n"); }},
      {"BAD F11 mlx5_2 port 1",
       [](H100Node& n) { n.plant(n.ib(2, "rate"), "200 Gb/sec (4X HDR)\n"); }},
      {"BAD F12 GPU 4 (0000:53:00.0)", [](H100Node& n) { n.gpu(4, "link.17.active", "0"); }},
      {"BAD F13 GPU 7 (0000:83:00.0)", [](H100Node& n) { n.gpu(7, "recovery_action", "1"); }},
      {"BAD F15 GPU 1 (0000:23:00.0)", [](H100Node& n) { n.gpu(1, "rows_failed", "1"); }},
      {"warn F16 GPU 2 (0000:33:00.0)", [](H100Node& n) { n.gpu(2, "clock_reasons", "0x80"); }},
      {"BAD F17 GPU 5 (0000:63:00.0)",
       [](H100Node& n) {
         n.gpu(5, "return.nvmlDeviceGetMemoryInfo_v2", "15");
         n.gpu(5, "return.nvmlDeviceGetMemoryInfo", "15");
       }},
      {"BAD F46 GPU 6 (0000:73:00.0)",
       [](H100Node& n) { n.gpu(6, "memory_used", std::to_string(1ULL << 30)); }},
      {"BAD F50 mc0",
       [](H100Node& n) { n.plant("sys/devices/system/edac/mc/mc0/ue_count", "1\n"); }},
      {"BAD F18 Lustre",
       [](H100Node& n) { n.plant("sys/fs/lustre/health_check", "NOT HEALTHY\n"); }}};
  return faults;
}

std::vector<std::string> lines_of(H100Node& node) {
  std::vector<std::string> lines;
  for (const Finding& f : read_node(node.options()).findings)
    if (!f.code.empty())
      lines.push_back(fmt::format("{} {} {}", level_word(f.level), f.code, f.where));
  std::sort(lines.begin(), lines.end());
  return lines;
}

// The codes of a node after one change.
std::string codes_after(const std::function<void(H100Node&)>& change) {
  H100Node node;
  change(node);
  std::string text;
  for (const Finding& f : read_node(node.options()).findings)
    if (!f.code.empty()) text += (text.empty() ? "" : " ") + f.code;
  return text;
}

}  // namespace

TEST_CASE("fault pairs: any two faults at once are both found, and nothing else is") {
  const auto& faults = all_faults();
  for (size_t a = 0; a < faults.size(); ++a) {
    for (size_t b = a + 1; b < faults.size(); ++b) {
      H100Node node;
      faults[a].plant(node);
      faults[b].plant(node);
      std::vector<std::string> expected = {faults[a].line, faults[b].line};
      std::sort(expected.begin(), expected.end());
      CHECK(lines_of(node) == expected);
    }
  }
}

TEST_CASE("fault pairs: all faults at once are found, the bad ones before the warnings") {
  H100Node node;
  std::vector<std::string> expected;
  for (const Fault& fault : all_faults()) {
    fault.plant(node);
    expected.emplace_back(fault.line);
  }
  std::sort(expected.begin(), expected.end());
  CHECK(lines_of(node) == expected);
  const auto findings = read_node(node.options()).findings;
  CHECK(findings.front().level == Level::kBad);
  const auto first_warning = std::find_if(findings.begin(), findings.end(),
                                          [](const Finding& f) { return f.level == Level::kWarn; });
  CHECK(std::none_of(first_warning, findings.end(),
                     [](const Finding& f) { return f.level == Level::kBad; }));
}

TEST_CASE("fault edges: a limit that is just kept is good, one more is a fault") {
  const auto link_downed = [](const char* count) {
    return [count](H100Node& n) { n.plant(n.ib(1, "counters/link_downed"), count); };
  };
  CHECK(codes_after(link_downed("2\n")) == "");
  CHECK(codes_after(link_downed("3\n")) == "F10");
  const auto gpu = [](const char* key, const char* value) {
    return [key, value](H100Node& n) { n.gpu(3, key, value); };
  };
  CHECK(codes_after(gpu("temperature", "87")) == "");
  CHECK(codes_after(gpu("temperature", "88")) == "F16");
  CHECK(codes_after(gpu("ecc_corrected", "20000000")) == "");
  CHECK(codes_after(gpu("ecc_corrected", "20000001")) == "F15");
  CHECK(codes_after(gpu("pcie_replays", "1000")) == "");
  CHECK(codes_after(gpu("pcie_replays", "1001")) == "F49");
  CHECK(codes_after(gpu("memory_used", "67108864")) == "");
  CHECK(codes_after(gpu("memory_used", "67108865")) == "F46");
  CHECK(codes_after(gpu("memory_mib", "80896")) == "");
  CHECK(codes_after(gpu("memory_mib", "80895")) == "F51");
  CHECK(codes_after([](H100Node& n) { n.gpu(-1, "driver", "535.0"); }).find("F52") !=
        std::string::npos);  // not the module's
  CHECK(codes_after([](H100Node& n) { n.gpu(-1, "cuda", "12020"); }) == "");
  CHECK(codes_after([](H100Node& n) { n.gpu(-1, "cuda", "12010"); }) == "F52");
  const auto mc = [](const char* count) {
    return [count](H100Node& n) { n.plant("sys/devices/system/edac/mc/mc1/ce_count", count); };
  };
  CHECK(codes_after(mc("10000\n")) == "");
  CHECK(codes_after(mc("10001\n")) == "F50");
}

TEST_CASE("fault edges: every recovery action and every slowdown bit has its words") {
  for (unsigned action = 0; action <= 6; ++action) {
    CAPTURE(action);
    const std::string codes =
        codes_after([&](H100Node& n) { n.gpu(0, "recovery_action", std::to_string(action)); });
    CHECK(codes == (action == 0 ? "" : "F13"));
  }
  for (int bit = 0; bit < 9; ++bit) {
    CAPTURE(bit);
    const bool slow = bit == 3 || bit == 5 || bit == 6 || bit == 7;
    const std::string codes =
        codes_after([&](H100Node& n) { n.gpu(0, "clock_reasons", std::to_string(1U << bit)); });
    CHECK(codes == (slow ? "F16" : ""));
  }
}

TEST_CASE("fault edges: what a baseline remembers is compared one by one") {
  H100Node good;
  const auto file = good.root() / "baseline.json";
  learn_baseline(read_node(good.options()), file);
  const auto against = [&](const std::function<void(H100Node&)>& change) {
    H100Node node;
    change(node);
    NodeOptions options = node.options();
    options.expected = {};
    options.baseline = file;
    std::string text;
    for (const Finding& f : read_node(options).findings)
      if (f.where.find('.') != std::string::npos && !f.code.empty())
        text += f.code + " " + f.where + "\n";
    return text;
  };
  CHECK(against([](H100Node&) {}) == "");
  CHECK(against([](H100Node& n) {
          n.plant(n.ib(6, "rate"), "200 Gb/sec (4X HDR)\n");
        }).find("F51 ib.mlx5_6/1.rate\n") != std::string::npos);
  CHECK(against([](H100Node& n) { n.gpu(2, "name", "NVIDIA A100"); }).find("F51 gpu.2.name\n") !=
        std::string::npos);
  CHECK(against([](H100Node& n) {
          n.gpu(-1, "driver", "580.1");
        }).find("F52 version.gpu_driver\n") != std::string::npos);
  CHECK(against([](H100Node& n) {
          n.plant(n.ib(0, "counters/symbol_error"), "50000\n");
        }).find("F49 ib.mlx5_0/1.symbol_error\n") != std::string::npos);
}
