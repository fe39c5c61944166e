#include "lib/health/kernel_events.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

// What a whole log says: groups, counts, times and age.

using namespace mm::health;

namespace {

constexpr int64_t kBoot = 1'700'000'000'000;

struct Line {
  double uptime_s;
  std::string text;
};

std::vector<Finding> judged(const std::vector<Line>& lines, double uptime_s = 1000) {
  KernelLog log{.checked = true};
  for (const Line& line : lines) log.lines.push_back({line.uptime_s, line.text});
  return judge_kernel_log(log, load_xid_table(), {.boot_unix_ms = kBoot, .uptime_s = uptime_s});
}

std::string shown(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings)
    text += fmt::format("{} {} {}: {}\n", level_word(f.level), f.code, f.where, f.what);
  return text;
}

std::string xid(const char* gpu, int number, const char* rest = "pid=1, text") {
  return fmt::format("NVRM: Xid (PCI:0000:{}:00): {}, {}", gpu, number, rest);
}

}  // namespace

TEST_CASE("kernel events: one finding a kind and place, with the first line's time and the count") {
  const auto found = judged({{100, xid("5b", 31)},
                             {200, xid("5b", 31)},
                             {150, xid("5c", 31)},
                             {300, xid("5b", 43)},
                             {400, "nothing to see"}});
  REQUIRE(found.size() == 3);
  CHECK(found[0].where == "GPU 0000:5b:00");
  CHECK(found[0].what.ends_with(", 2 times"));
  CHECK(found[0].since_unix_ms == kBoot + 100'000);
  CHECK(found[1].where == "GPU 0000:5c:00");
  CHECK_FALSE(found[1].what.ends_with(" times"));
  CHECK(found[2].since_unix_ms == kBoot + 300'000);
}

TEST_CASE("kernel events: one recent line keeps a fault bad, old ones alone make a warning") {
  const double now_s = 200'000, day_s = 24 * 3600;
  CHECK(judged({{now_s - day_s - 1, xid("5b", 79)}}, now_s).front().level == Level::kWarn);
  CHECK(judged({{now_s - day_s + 1, xid("5b", 79)}}, now_s).front().level == Level::kBad);
  const auto both = judged({{10, xid("5b", 79)}, {now_s - 10, xid("5b", 79)}}, now_s);
  CHECK(both.front().level == Level::kBad);
  CHECK(both.front().since_unix_ms == kBoot + 10'000);
  CHECK(judged({{10, xid("5b", 79)}}, now_s).front().what.ends_with(", longer ago than 24 h"));
}

TEST_CASE("kernel events: without times nothing is old, and no date is invented") {
  KernelLog log{.checked = true};
  log.lines.push_back({std::nullopt, xid("5b", 79)});
  const auto found = judge_kernel_log(log, load_xid_table(), {.uptime_s = 1e9});
  REQUIRE(found.size() == 1);
  CHECK(found[0].level == Level::kBad);
  CHECK_FALSE(found[0].since_unix_ms);
}

TEST_CASE("kernel events: three flaps of a port are bad, two are a warning, ports count alone") {
  const auto flap = [](const char* port) {
    return fmt::format("mlx5_core 0000:24:00.0 {}: Link down", port);
  };
  CHECK(shown(judged({{1, flap("ib1")}, {2, flap("ib1")}})) ==
        "warn F10 mlx5_core 0000:24:00.0 ib1: port lost its link, 2 times\n");
  CHECK(shown(judged({{1, flap("ib1")}, {2, flap("ib1")}, {3, flap("ib1")}})) ==
        "BAD F10 mlx5_core 0000:24:00.0 ib1: port lost its link, 3 times\n");
  CHECK(shown(judged({{1, flap("ib1")}, {2, flap("ib2")}, {3, flap("ib1")}})) ==
        "warn F10 mlx5_core 0000:24:00.0 ib1: port lost its link, 2 times\n"
        "warn F10 mlx5_core 0000:24:00.0 ib2: port lost its link\n");
}

TEST_CASE("kernel events: a fatal line among harmless ones of the same number decides") {
  const auto found = judged({{1, xid("5b", 145, "RLW Nonfatal, Link 3")},
                             {2, xid("5b", 145, "RLW Fatal, Link 3")},
                             {3, xid("5b", 145, "RLW Nonfatal, Link 3")}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].level == Level::kBad);
  CHECK(found[0].what.ends_with(", 3 times"));
  CHECK(judged({{1, xid("5b", 145, "RLW Nonfatal, Link 3")}}).front().level == Level::kWarn);
}

TEST_CASE("kernel events: containment softens a double-bit error of the same GPU only") {
  CHECK(judged({{1, xid("5b", 48)}, {2, xid("5c", 94)}}).front().level == Level::kBad);
  CHECK(judged({{1, xid("5b", 48)}, {2, xid("5b", 94)}}).front().level == Level::kWarn);
  CHECK(judged({{1, xid("5b", 48)}, {2, xid("5b", 94)}, {3, xid("5c", 95)}}).front().level ==
        Level::kWarn);
}

TEST_CASE("kernel events: a long log of faults stays a short list") {
  std::vector<Line> lines;
  for (int i = 0; i < 20'000; ++i)
    lines.push_back({double(i), i % 2 == 0 ? xid("5b", 31) : "Buffer I/O error on dev nvme2n1"});
  const auto found = judged(lines, 20'000);
  REQUIRE(found.size() == 2);
  CHECK(found[0].what.ends_with(", 10000 times"));
  CHECK(found[1].code == "F54");
}
