#include "tools/mm_oracle/report.h"

#include <doctest/doctest.h>

#include <limits>

using namespace mm::oracle;

TEST_CASE("a report passes while all is within and what is missing is known to be") {
  Report report;
  report.number("loss", 1e-7, 2e-6, "rel");
  report.exact("count", true, "");
  report.not_built("later");
  CHECK(report.passed());
  CHECK(report.count(Quantity::Status::kWithin) == 2);
  report.unknown("surprise");
  CHECK(!report.passed());
}

TEST_CASE("an error above the tolerance, no number, or an inequality is outside") {
  const auto outside = [](auto&& add) {
    Report report;
    add(report);
    return !report.passed();
  };
  CHECK(outside([](Report& r) { r.number("x", 2e-6, 1e-6, "rel"); }));
  CHECK(outside(
      [](Report& r) { r.number("x", std::numeric_limits<double>::quiet_NaN(), 1e-6, "rel"); }));
  CHECK(outside(
      [](Report& r) { r.number("x", std::numeric_limits<double>::infinity(), 1e-6, "rel"); }));
  CHECK(outside([](Report& r) { r.exact("x", false, "3 here, 4 there"); }));
}

TEST_CASE("table and JSON say the same") {
  Report report;
  report.number("loss", 1e-7, 2e-6, "rel");
  report.exact("count", false, "3 here, 4 there");
  report.not_built("later");
  report.unknown("surprise");
  const std::string table = report.table("DIR", "llava");
  CHECK(table.find("ok         loss  rel 1.00e-07 (tolerance 2e-06)") != std::string::npos);
  CHECK(table.find("DIFFERS    count  exact: 3 here, 4 there") != std::string::npos);
  CHECK(table.find("DIR: llava: 1 within, 1 outside, 1 not built, 1 unknown") != std::string::npos);
  const mm::Json json = report.json("DIR", "llava");
  CHECK(json.at("schema") == "mm_oracle/1");
  CHECK(json.at("passed") == false);
  CHECK(json.at("not_built") == 1);
  CHECK(json.at("quantities").size() == 4);
  CHECK(json.at("quantities")[1].at("note") == "3 here, 4 there");
}
