#include "lib/health/finding.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/text_escape.h"

namespace mm::health {
namespace {

constexpr size_t kShownBytes = 400;

int severity(Level level) {
  switch (level) {
    case Level::kBad:
      return 0;
    case Level::kWarn:
      return 1;
    case Level::kNotChecked:
      return 2;
    case Level::kOk:
      break;
  }
  return 3;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Finding ok(std::string where, std::string what) {
  return {.level = Level::kOk, .where = std::move(where), .what = std::move(what)};
}

Finding not_checked(std::string where, std::string why) {
  return {.level = Level::kNotChecked, .where = std::move(where), .what = std::move(why)};
}

std::string_view level_word(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarn:
      return "warn";
    case Level::kBad:
      return "BAD";
    case Level::kNotChecked:
      break;
  }
  return "not checked";
}

std::string finding_line(const Finding& finding) {
  std::string line = fmt::format("{:<11} {:<3} {}: {}", level_word(finding.level), finding.code,
                                 escape_text(finding.where), escape_text(finding.what, 1000));
  if (!finding.evidence.empty()) line += "; " + escape_text(finding.evidence, kShownBytes);
  if (finding.code.empty()) return line;
  line += "; since " +
          (finding.since_unix_ms ? iso_time(*finding.since_unix_ms) : std::string("unknown"));
  return line + "; action: " + escape_text(finding.action, kShownBytes);
}

Json finding_json(const Finding& finding) {
  Json json = {
      {"level", level_word(finding.level)},
      {"code", text_or_null(finding.code)},
      {"where", finding.where},
      {"what", escape_text(finding.what, 1000)},
      {"evidence", text_or_null(escape_text(finding.evidence, kShownBytes))},
      {"since", finding.since_unix_ms ? Json(iso_time(*finding.since_unix_ms)) : Json(nullptr)},
      {"action", text_or_null(finding.action)}};
  if (!finding.hosts.empty()) json["hosts"] = finding.hosts;
  return json;
}

Finding finding_from(const Json& json) try {
  Finding finding;
  const auto text = [&](const char* key) {
    return json.at(key).is_null() ? std::string() : json.at(key).get<std::string>();
  };
  const std::string level = text("level");
  for (const Level one : {Level::kBad, Level::kWarn, Level::kNotChecked})
    if (level == level_word(one)) finding.level = one;
  if (level != level_word(finding.level)) throw DataError("a finding of level \"{}\"", level);
  finding.code = text("code");
  finding.where = text("where");
  finding.what = text("what");
  finding.evidence = text("evidence");
  finding.action = text("action");
  if (json.contains("hosts")) finding.hosts = json["hosts"].get<std::vector<std::string>>();
  return finding;
} catch (const Json::exception& error) {
  throw DataError("no finding: {}", error.what());
}

void sort_findings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return severity(a.level) < severity(b.level);
  });
}

bool any_bad(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.level == Level::kBad; });
}

}  // namespace mm::health
