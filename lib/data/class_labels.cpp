#include "lib/data/class_labels.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "lib/base/error.h"
#include "lib/data/text_stream.h"

namespace mm::data {
namespace {

constexpr size_t kMostClasses = 1000000;

/// Of "17", not of "017" or "-1".
std::optional<uint64_t> number_of(std::string_view name) {
  uint64_t number = 0;
  const auto end = std::from_chars(name.data(), name.data() + name.size(), number);
  if (end.ec != std::errc() || end.ptr != name.data() + name.size()) return std::nullopt;
  if (std::to_string(number) != name) return std::nullopt;
  return number;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  TextStream in(path);
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (std::string line; read_line(in, line);) {
    if (line.empty() || !seen.insert(line).second) {
      throw DataError("{}: line {}: the class name \"{}\" is {}", path.string(), names.size() + 1,
                      line, line.empty() ? "empty" : "there twice");
    }
    names.push_back(line);
  }
  return names;
}

std::set<std::string> names_in(const SourceOptions& options) {
  const auto source = open_source(options);
  std::set<std::string> names;
  while (const auto item = source->next()) {
    const auto* record = std::get_if<Record>(&*item);
    if (record == nullptr || record->label.empty()) continue;
    names.insert(record->label);
    if (names.size() > kMostClasses)
      throw DataError("{}: over {} classes", options.path.string(), kMostClasses);
  }
  return names;
}

std::vector<std::string> in_order(const std::set<std::string>& names, const std::string& origin) {
  if (!std::ranges::all_of(names, [](const auto& name) { return number_of(name).has_value(); }))
    return {names.begin(), names.end()};
  uint64_t most = 0;
  for (const std::string& name : names) most = std::max(most, *number_of(name));
  if (most >= kMostClasses) throw DataError("{}: class {}, over {}", origin, most, kMostClasses);
  std::vector<std::string> all;
  for (uint64_t i = 0; i <= most; ++i) all.push_back(std::to_string(i));
  return all;
}

}  // namespace

std::string folder_label(std::string_view picture) {
  return std::filesystem::path(picture).parent_path().filename().string();
}

std::vector<std::string> class_names_of(const PackOptions& options) {
  if (!options.class_names.empty()) {
    auto names = lines_of(options.class_names);
    if (names.empty()) throw DataError("{}: no class names in it", options.class_names.string());
    return names;
  }
  const std::string origin = options.source.path.string();
  const std::set<std::string> names = names_in(options.source);
  if (names.empty())
    throw DataError("{}: no record has a label \"{}\"", origin, options.source.labels);
  return in_order(names, origin);
}

}  // namespace mm::data
