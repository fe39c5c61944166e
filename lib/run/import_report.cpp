#include "lib/run/import_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/text_escape.h"

namespace mm::run {
namespace {

std::string shown(const ImportReport::Unmapped& u) {
  return escape_text(u.flag, 120) + (u.value.empty() ? "" : " " + escape_text(u.value, 80));
}

/// One line a reason, with all flags that it holds for.
void add_grouped(const std::vector<ImportReport::Unmapped>& all, bool needless, const char* title,
                 std::vector<std::string>& out) {
  std::vector<std::pair<std::string, std::string>> groups;  // reason, flags
  for (const ImportReport::Unmapped& u : all) {
    if (u.needless != needless) continue;
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return group.first == u.reason; });
    if (same == groups.end()) {
      groups.emplace_back(u.reason, shown(u));
    } else {
      same->second += ", " + shown(u);
    }
  }
  for (const auto& [reason, flags] : groups)
    out.push_back(fmt::format("{}: {}: {}", title, flags, reason));
}

}  // namespace

std::vector<std::string> ImportReport::lines() const {
  std::vector<std::string> out;
  for (const Missing& m : missing) out.push_back(fmt::format("missing: {}: {}", m.key, m.reason));
  for (const std::string& text : notes) out.push_back("note: " + text);
  add_grouped(unmapped, false, "not mapped", out);
  add_grouped(unmapped, true, "no meaning here", out);
  return out;
}

Json ImportReport::to_json() const {
  Json json{{"schema", 1},
            {"mapped", Json::array()},
            {"unmapped", Json::array()},
            {"missing", Json::array()},
            {"notes", notes},
            {"commands", commands}};
  for (const Mapped& m : mapped) {
    json["mapped"].push_back(
        {{"flag", m.flag}, {"value", m.value}, {"key", m.key}, {"setting", m.setting}});
  }
  for (const Unmapped& u : unmapped) {
    json["unmapped"].push_back({{"flag", u.flag},
                                {"value", u.value},
                                {"kind", u.needless ? "no_meaning" : "not_mapped"},
                                {"reason", u.reason}});
  }
  for (const Missing& m : missing)
    json["missing"].push_back({{"key", m.key}, {"reason", m.reason}});
  return json;
}

}  // namespace mm::run
