#include "lib/run/import_report.h"

#include <doctest/doctest.h>

using mm::run::ImportReport;

namespace {

ImportReport some_report() {
  ImportReport report;
  report.mapped = {{"--lr", "1e-3", "stage.lr", "0.001"}};
  report.unmapped = {{"--a", "1", "of no use", true},
                     {"--odd", "2", "not known", false},
                     {"--b", "", "of no use", true}};
  report.missing = {{"stage.steps", "give --samples"}};
  report.notes = {"something"};
  report.commands = {"mmshard pack"};
  return report;
}

}  // namespace

TEST_CASE("ImportReport: what is missing comes first, one reason is said once") {
  CHECK(some_report().lines() ==
        std::vector<std::string>{"missing: stage.steps: give --samples", "note: something",
                                 "not mapped: --odd 2: not known",
                                 "no meaning here: --a 1, --b: of no use"});
  CHECK(ImportReport{}.lines().empty());
}

TEST_CASE("ImportReport: JSON keeps every flag apart, in order") {
  const mm::Json json = some_report().to_json();
  CHECK(json.at("mapped").at(0) ==
        mm::Json{{"flag", "--lr"}, {"value", "1e-3"}, {"key", "stage.lr"}, {"setting", "0.001"}});
  REQUIRE(json.at("unmapped").size() == 3);
  CHECK(json.at("unmapped").at(0).at("kind") == "no_meaning");
  CHECK(json.at("unmapped").at(1).at("kind") == "not_mapped");
  CHECK(json.at("unmapped").at(2).at("flag") == "--b");
  CHECK(json.at("missing").at(0).at("key") == "stage.steps");
  CHECK(json.at("commands").at(0) == "mmshard pack");
}

TEST_CASE("ImportReport: long and odd values do not break a line") {
  ImportReport report;
  report.unmapped = {{"--x", std::string(500, 'v'), "r", false}, {"--y", "a\nb", "r", false}};
  const std::vector<std::string> lines = report.lines();
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].size() < 200);
  CHECK(lines[0].find('\n') == std::string::npos);
}
