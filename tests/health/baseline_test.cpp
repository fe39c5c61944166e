#include "lib/health/baseline.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/base/error.h"
#include "tests/health/h100_node.h"

using namespace mm::health;
using mm::health::test::H100Node;

namespace {

std::vector<std::string> compared(H100Node& node) {
  std::vector<std::string> lines;
  for (const Finding& f :
       compare_baseline(read_node(node.options()), node.root() / "baseline.json", 0.05))
    lines.push_back(fmt::format("{} {} {}: {}", level_word(f.level), f.code, f.where, f.evidence));
  return lines;
}

}  // namespace

TEST_CASE("baseline: the same node agrees; what changed is told with both values") {
  H100Node node;
  learn_baseline(read_node(node.options()), node.root() / "baseline.json");
  CHECK(compared(node).size() == 1);
  CHECK(compared(node)[0].starts_with("ok "));
  node.plant(node.ib(1, "rate"), "200 Gb/sec (4X HDR)\n");
  node.gpu(-1, "driver", "535.1");
  node.plant(node.ib(4, "counters/link_downed"), "9\n");
  node.gpu(2, "ecc_uncorrected", "1");
  CHECK(compared(node) ==
        std::vector<std::string>{
            "warn F52 version.gpu_driver: \"535.1\", was \"570.124.06\"",
            "BAD F51 ib.mlx5_1/1.rate: \"200 Gb/sec (4X HDR)\", was \"400 Gb/sec (4X NDR)\"",
            "BAD F10 ib.mlx5_4/1.link_downed: 9, was " +
                std::to_string(read_node(H100Node().options()).ib_ports[4].counter("link_downed")),
            "BAD F15 gpu.2.ecc_uncorrected: 1, was 0"});
}

TEST_CASE("baseline: a speed below the tolerance is F56, above it is fine") {
  H100Node node;
  NodeReport report = read_node(node.options());
  report.full = FullTests{.gemm_gflop_s = 100.0};
  const auto file = node.root() / "b.json";
  learn_baseline(report, file);
  report.full->gemm_gflop_s = 96.0;
  CHECK(compare_baseline(report, file, 0.05).front().level == Level::kOk);
  report.full->gemm_gflop_s = 90.0;
  const Finding found = compare_baseline(report, file, 0.05).front();
  CHECK(found.code == "F56");
  CHECK(found.evidence == "90.0, 90 % of 100.0");
}

TEST_CASE("baseline: another node's serial numbers and counters are not compared") {
  H100Node one(1), two(2);
  learn_baseline(read_node(one.options()), two.root() / "baseline.json");
  for (const std::string& line : compared(two)) CHECK_FALSE(line.starts_with("BAD"));
}

TEST_CASE("baseline: a file that is none is refused") {
  H100Node node;
  node.plant("baseline.json", "{\"schema\": 1}");
  CHECK_THROWS_AS(compared(node), mm::DataError);
  node.plant("baseline.json", "{");
  CHECK_THROWS_AS(compared(node), mm::DataError);
}
