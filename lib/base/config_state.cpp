#include "lib/base/config_state.h"

#include <fmt/format.h>

#include "lib/base/text_escape.h"
#include "lib/base/toml_text.h"

namespace mm::detail {

std::string join_path(const std::string& table, std::string_view key) {
  return table.empty() ? std::string(key) : table + "." + std::string(key);
}

std::optional<std::string> override_origin(const ConfigState& state, const std::string& path) {
  std::string prefix = path;
  while (true) {
    const auto found = state.overrides.find(prefix);
    if (found != state.overrides.end()) return "--set " + found->second;
    const size_t dot = prefix.rfind('.');
    if (dot == std::string::npos) return std::nullopt;
    prefix.resize(dot);
  }
}

std::string place(const ConfigState& state, const toml::source_region& region) {
  if (!region.begin) return state.file.string();
  return fmt::format("{}:{}:{}", state.file.string(), region.begin.line, region.begin.column);
}

std::string found_text(const toml::node& node) {
  constexpr size_t kShownBytes = 40;
  if (const auto* v = node.as_string()) {
    return fmt::format("a string (\"{}\")", escape_text(v->get(), kShownBytes));
  }
  if (const auto* v = node.as_integer()) return fmt::format("an integer ({})", v->get());
  if (const auto* v = node.as_floating_point()) {
    return fmt::format("a number ({})", toml_text(v->get()));
  }
  if (const auto* v = node.as_boolean()) return fmt::format("a boolean ({})", v->get());
  if (node.is_array()) return "an array";
  if (node.is_table()) return "a table";
  return "a date or time";
}

std::string parse_reason(const toml::parse_error& error) {
  std::string reason = escape_text(error.description());
  const std::string_view lead = "Error while parsing ";
  if (reason.starts_with(lead)) reason.erase(0, lead.size());
  return reason;
}

std::string quoted_list(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += '"' + words[i] + '"';
  }
  return out;
}

}  // namespace mm::detail
