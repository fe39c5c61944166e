#include "lib/probe/collective_bench.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/probe/memory_backend.h"
#include "tests/probe/star_threads.h"

using namespace mm::probe;
using mm::health::Finding;

namespace {

BenchReport bench(const BenchOptions& options, int world, int spoiled = -1) {
  test::MemoryHub hub(world);
  BenchReport report;
  std::vector<int> members;
  for (int r = 0; r < world; ++r) members.push_back(r);
  test::run_ranks(world, [&](RankStar& star) {
    test::MemoryBackend backend(hub, star.rank());
    backend.spoil = star.rank() == spoiled;
    const auto rows = run_bench(options, backend, members, star.rank());
    BenchReport own = gather_bench(options, "all", backend, rows, star);
    if (star.rank() == 0) report = std::move(own);
  });
  return report;
}

std::vector<std::string> faults(const BenchReport& report) {
  std::vector<std::string> lines;
  for (const Finding& f : report.findings)
    if (!f.code.empty()) lines.push_back(f.code + " " + f.where + ": " + f.what);
  return lines;
}

// A report whose groups reached these bus bandwidths.
BenchReport planted(const std::vector<double>& bus, std::optional<double> expected) {
  BenchReport report;
  report.options.expected_gb_s = expected;
  report.group_by = "node";
  for (size_t i = 0; i < bus.size(); ++i) {
    BenchGroup group{.ranks = {int(i)}, .hosts = {fmt::format("n{}", i)}};
    group.rows.push_back({.bytes = 1, .count = 1});
    group.rows.back().out_of_place.bandwidth.bus_gb_s = bus[i];
    report.groups.push_back(group);
    report.hosts.push_back(group.hosts.front());
  }
  report.findings = judge_bench(report);
  return report;
}

}  // namespace

TEST_CASE("nccl: every collective's definition agrees with the check, at 1, 2 and 3 ranks") {
  for (const std::string& name : collective_words()) {
    for (const int world : {1, 2, 3}) {
      CAPTURE(name);
      CAPTURE(world);
      const BenchReport report = bench({.collective = *collective_of(name),
                                        .min_bytes = 8,
                                        .max_bytes = 512,
                                        .factor = 8,
                                        .iterations = 2},
                                       world);
      REQUIRE(report.groups.size() == 1);
      CHECK(report.groups[0].rows.size() == 3);
      for (const BenchRow& row : report.groups[0].rows) CHECK(row.out_of_place.wrong == 0);
      CHECK(faults(report).empty());
    }
  }
}

TEST_CASE("nccl: one wrong element is counted and is F55") {
  const BenchReport report = bench({.min_bytes = 64, .max_bytes = 64}, 3, 1);
  CHECK(report.groups[0].rows[0].out_of_place.wrong == 1);
  CHECK(faults(report) == std::vector<std::string>{"F55 3 ranks: wrong results"});
  CHECK(bench_text(report).find("# Out of bounds values : 2 FAILED\n") != std::string::npos);
  CHECK(bench_json(report)["verdict"] == "bad");
}

TEST_CASE("nccl: below expectation and below the other groups is F06") {
  CHECK(faults(planted({99, 100}, 100.0)).empty());
  CHECK(faults(planted({99, 80}, 100.0)) ==
        std::vector<std::string>{"F06 node n1: bus bandwidth is low"});
  CHECK(faults(planted({50, 51, 30, 52}, std::nullopt)) ==
        std::vector<std::string>{"F06 node n2: bus bandwidth is low"});
  CHECK(planted({50, 49}, std::nullopt).findings.front().level == mm::health::Level::kNotChecked);
}

TEST_CASE("nccl: groups by node and by local rank") {
  const std::vector<std::string> hosts = {"a", "a", "b", "b", "b"};
  const auto groups = [&](const std::string& by) {
    std::vector<int> all;
    for (int r = 0; r < 5; ++r) all.push_back(group_of(by, hosts, r));
    return all;
  };
  CHECK(groups("all") == std::vector<int>{0, 0, 0, 0, 0});
  CHECK(groups("node") == std::vector<int>{0, 0, 1, 1, 1});
  CHECK(groups("local") == std::vector<int>{0, 1, 0, 1, 2});
}

TEST_CASE("nccl: text has nccl-tests' columns") {
  BenchReport report;
  report.options = {.min_bytes = 8388608, .max_bytes = 8388608};
  report.backend = "gloo";
  report.group_by = "all";
  report.hosts = {"n1", "n2"};
  report.devices = {"CPU", "CPU"};
  BenchGroup group{.ranks = {0, 1}, .hosts = report.hosts};
  BenchRow row{.bytes = 8388608, .count = 2097152};
  row.out_of_place = {2e-3, bandwidth(Collective::kAllReduce, 2, 8388608, 2e-3), 0};
  group.rows = {row};
  report.groups = {group};
  report.average_bus_gb_s = 4.1943;
  CHECK(
      bench_text(report) ==
      "# Collective test starting: all_reduce over gloo, 2 ranks\n"
      "# minBytes 8388608 maxBytes 8388608 step: 2(factor) warmup iters: 1 iters: 20 validation: "
      "1\n#\n# Using devices\n"
      "#  Rank  0 Group  0 on n1 device CPU\n#  Rank  1 Group  0 on n2 device CPU\n#\n"
      "#                                                            out-of-place                 "
      "      in-place\n"
      "#       size         count      type   redop    root      time    algbw    busbw #wrong   "
      "   time    algbw    busbw #wrong\n"
      "#        (B)    (elements)                               (us)   (GB/s)   (GB/s)           "
      "   (us)   (GB/s)   (GB/s)\n"
      "     8388608       2097152     float     sum      -1      2000     4.19     4.19      0     "
      "  N/A      N/A      N/A    N/A\n"
      "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 4.1943\n#\n");
}

TEST_CASE("nccl: findings name a host where a group is one host, and nobody where it is several") {
  BenchReport report = planted({50, 51, 30, 52}, std::nullopt);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].hosts == std::vector<std::string>{"n2"});
  for (BenchGroup& group : report.groups) group.hosts.push_back("another");
  CHECK(judge_bench(report)[0].hosts.empty());
  CHECK(once_each({"b", "a", "b", "a"}) == std::vector<std::string>{"b", "a"});
  CHECK(once_each({}).empty());
}

TEST_CASE("nccl: a collective that did not end is F07 in text and JSON, without figures") {
  BenchReport report{
      .backend = "nccl", .hosts = {"n0", "n1"}, .failure = "rank 1: no end\nin time"};
  report.findings = judge_bench(report);
  CHECK(bench_text(report) ==
        "# Collective test starting: all_reduce over nccl, 2 ranks\n"
        "# minBytes 33554432 maxBytes 33554432 step: 2(factor) warmup iters: 1 iters: 20 "
        "validation: 1\n#\n"
        "# Using devices\n"
        "#  Rank  0 Group  0 on n0 device unknown\n"
        "#  Rank  1 Group  0 on n1 device unknown\n"
        "# Nothing was measured\n#\n"
        "# BAD         F07 2 ranks: the collective did not end; rank 1: no end\\nin time; since "
        "unknown; action: see the nodes and links named below; run mmprobe pairs\n");
  const mm::Json json = bench_json(report);
  CHECK(json["failure"] == "rank 1: no end\\nin time");
  CHECK(json["groups"].empty());
  CHECK(json["verdict"] == "bad");
}
