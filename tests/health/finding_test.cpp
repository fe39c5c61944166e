#include "lib/health/finding.h"

#include <doctest/doctest.h>

using namespace mm::health;

TEST_CASE("finding: one line, its JSON twin, and the order by severity") {
  const Finding bad{.level = Level::kBad,
                    .code = "F09",
                    .where = "mlx5_3 port 1",
                    .what = "port is down",
                    .evidence = "state \"1: DOWN\"\n",
                    .action = "exclude the node",
                    .since_unix_ms = 1'700'000'000'000};
  CHECK(finding_line(bad) ==
        "BAD         F09 mlx5_3 port 1: port is down; state \"1: DOWN\"\\n; since "
        "2023-11-14T22:13:20.000Z; action: exclude the node");
  const mm::Json json = finding_json(bad);
  CHECK(json["code"] == "F09");
  CHECK(json["since"] == "2023-11-14T22:13:20.000Z");
  CHECK(finding_line(not_checked("GPUs", "no library")) == "not checked     GPUs: no library");
  CHECK(finding_json(ok("memory", "fine"))["code"].is_null());
  std::vector<Finding> all = {ok("a", ""), not_checked("b", ""), bad};
  CHECK(any_bad(all));
  sort_findings(all);
  CHECK(all.front().where == "mlx5_3 port 1");
  CHECK(all.back().where == "a");
}
