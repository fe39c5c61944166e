#include "lib/data/bad_sample_ledger.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/data/json_fields.h"

namespace mm::data {
namespace {

constexpr size_t kNamed = 20;

LedgerEntry entry_from(const Json& json, const std::string& origin) {
  const JsonFields in(json, origin);
  LedgerEntry entry;
  entry.row = in.integer<uint64_t>("row");
  entry.key = in.text("key");
  entry.path = in.text("path");
  entry.kind = in.text("kind");
  entry.message = in.text("message");
  const auto flag = [&](const char* key) { return json.contains(key) && json[key] == true; };
  entry.skipped = flag("skipped");
  entry.warned = flag("warned");
  return entry;
}

}  // namespace

void write_ledger(const std::filesystem::path& path, std::span<const LedgerEntry> entries) {
  std::string text;
  for (const LedgerEntry& entry : entries) {
    Json line = {{"row", entry.row},
                 {"key", entry.key},
                 {"path", entry.path},
                 {"kind", entry.kind},
                 {"message", entry.message}};
    if (entry.skipped) line["skipped"] = true;
    if (entry.warned) line["warned"] = true;
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  write_file_atomic(path, text);
}

std::vector<LedgerEntry> read_ledger(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<LedgerEntry> entries;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string origin = fmt::format("{}: line {}", path.string(), entries.size() + 1);
    entries.push_back(
        entry_from(parse_json(std::string_view(text).substr(begin, end - begin), origin), origin));
    begin = end + 1;
  }
  return entries;
}

std::map<std::string, uint64_t> count_kinds(std::span<const LedgerEntry> entries, Fate fate) {
  std::map<std::string, uint64_t> kinds;
  for (const LedgerEntry& entry : entries) {
    if (entry.fate() == fate) ++kinds[entry.kind];
  }
  return kinds;
}

std::string describe_kinds(const std::map<std::string, uint64_t>& kinds) {
  std::vector<std::pair<std::string, uint64_t>> sorted(kinds.begin(), kinds.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [kind, count] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kind, count);
  return text;
}

void check_bad_limit(std::span<const LedgerEntry> entries, uint64_t samples, double limit) {
  const auto bad = static_cast<uint64_t>(std::count_if(
      entries.begin(), entries.end(), [](const LedgerEntry& e) { return e.fate() == Fate::kBad; }));
  if (static_cast<double>(bad) <= limit * static_cast<double>(samples + bad)) return;
  std::string names;
  size_t named = 0;
  for (const LedgerEntry& entry : entries) {
    if (entry.fate() != Fate::kBad) continue;
    if (++named > kNamed) break;
    names += fmt::format("; row {} ({}): {}: {}", entry.row,
                         entry.path.empty() ? entry.key : entry.path, entry.kind, entry.message);
  }
  if (bad > kNamed) names += fmt::format("; and {} more", bad - kNamed);
  throw DataError(
      "{} of {} samples are bad ({:.3g} %), the limit is {:.3g} %: {}; mend them or raise "
      "--bad-limit{}",
      bad, samples + bad, 100.0 * static_cast<double>(bad) / static_cast<double>(samples + bad),
      100 * limit, describe_kinds(count_kinds(entries, Fate::kBad)), names);
}

}  // namespace mm::data
