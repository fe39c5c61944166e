#include "lib/health/finding.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

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

TEST_CASE("finding: its JSON reads back, with the nodes that it is about; other JSON is refused") {
  const Finding link{.level = Level::kBad,
                     .code = "F06",
                     .where = "n1 - n2 on ib0",
                     .what = "link is slow",
                     .evidence = "5 GB/s",
                     .action = "check the switches",
                     .hosts = {"n1", "n2"}};
  const Finding back = finding_from(finding_json(link));
  CHECK(finding_line(back) == finding_line(link));
  CHECK(back.hosts == link.hosts);
  CHECK(finding_json(back) == finding_json(link));
  for (const Finding& plain : {ok("memory", "fine"), not_checked("GPUs", "no library")}) {
    CHECK_FALSE(finding_json(plain).contains("hosts"));
    CHECK(finding_line(finding_from(finding_json(plain))) == finding_line(plain));
  }
  mm::Json json = finding_json(link);
  json["level"] = "terrible";
  CHECK_THROWS_WITH_AS(finding_from(json), "a finding of level \"terrible\"", mm::DataError);
  json = finding_json(link);
  json.erase("where");
  CHECK_THROWS_AS(finding_from(json), mm::DataError);
  json = finding_json(link);
  json["hosts"] = "n1";
  CHECK_THROWS_AS(finding_from(json), mm::DataError);
  CHECK_THROWS_AS(finding_from(mm::Json::array()), mm::DataError);
}
