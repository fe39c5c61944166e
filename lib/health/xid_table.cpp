#include "lib/health/xid_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/base/config.h"
#include "lib/base/error.h"
#include "lib/health/embedded.h"

namespace mm::health {
namespace {

constexpr int kMaxXid = 9999;

std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > kMaxXid) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

XidRow read_row(ConfigTable& table) {
  XidRow row;
  row.what = table.get_string("what", {.doc = "what it is"});
  row.nvidia = table.get_string("nvidia", {.doc = "NVIDIA's immediate action"});
  row.level =
      table.get_enum("level", {.words = {"warn", "bad"}, .doc = "what it makes of a node"}) == "bad"
          ? Level::kBad
          : Level::kWarn;
  row.fatal_word = table.find_string("fatal_word", {.doc = "makes a line bad"}).value_or("");
  row.code = table.get_string("code", {.doc = "code of the catalogue"});
  row.action = table.get_string("action", {.doc = "what to do"});
  return row;
}

}  // namespace

std::vector<int> parse_id_ranges(std::string_view text) {
  const std::string whole(text);
  std::vector<int> ids;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.empty()) return ids;
    const auto low = take_number(text);
    std::optional<int> high = low;
    if (low && text.starts_with('-')) {
      text.remove_prefix(1);
      high = take_number(text);
    }
    if (!low || !high || *high < *low)
      throw DataError("\"{}\": expected numbers and ranges", whole);
    for (int id = *low; id <= *high; ++id) ids.push_back(id);
  }
}

XidTable load_xid_table(const std::filesystem::path& file) {
  ConfigDocument document = file.empty() ? ConfigDocument::parse(embedded_xid_table(), "xid.toml")
                                         : ConfigDocument::load(file);
  ConfigTable root = document.root();
  root.get_string("source", {.doc = "where the table is from, and of when"});
  XidTable table;
  for (ConfigTable& element : root.array_of_tables("xid")) {
    const std::string ids = element.get_string("ids", {.doc = "numbers and ranges"});
    const XidRow row = read_row(element);
    try {
      for (const int id : parse_id_ranges(ids)) table[id] = row;
    } catch (const DataError& error) {
      element.fail("ids", error.what());
    }
  }
  root.finish();
  return table;
}

std::optional<XidLine> parse_xid(std::string_view text) {
  constexpr std::string_view kMark = "NVRM: Xid (";
  const size_t mark = text.find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  text.remove_prefix(mark + kMark.size());
  const size_t close = text.find("): ");
  if (close == std::string_view::npos) return std::nullopt;
  XidLine line;
  line.bus_id = text.substr(0, close);
  if (line.bus_id.starts_with("PCI:")) line.bus_id.erase(0, 4);
  text.remove_prefix(close + 3);
  const auto xid = take_number(text);
  if (!xid) return std::nullopt;
  line.xid = *xid;
  line.detail = text.substr(std::min(text.find_first_not_of(", "), text.size()));
  return line;
}

Finding judge_xid(const XidLine& line, const XidTable& table) {
  Finding finding{.level = Level::kWarn,
                  .code = "F14",
                  .where = "GPU " + line.bus_id,
                  .what = fmt::format("Xid {}: not in the table", line.xid),
                  .evidence = line.detail,
                  .action = "look it up in NVIDIA's catalogue"};
  const auto row = table.find(line.xid);
  if (row == table.end()) return finding;
  const bool fatal = !row->second.fatal_word.empty() &&
                     line.detail.find(row->second.fatal_word) != std::string::npos;
  finding.level = fatal ? Level::kBad : row->second.level;
  finding.code = row->second.code;
  finding.what = fmt::format("Xid {}: {} ({})", line.xid, row->second.what, row->second.nvidia);
  finding.action = row->second.action;
  return finding;
}

}  // namespace mm::health
