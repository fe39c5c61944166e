#pragma once
// Inside of config_*.cpp only: what a document and its tables share. Includes toml++, which is slow
// to compile.
#include <toml++/toml.h>

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace mm::detail {

/// One key that was read.
struct ConfigEntry {
  std::string key;
  std::string type;
  std::string fallback;
  std::string doc;
  std::optional<std::string> value;  ///< TOML text; nothing for an optional key that is absent
};

/// One table that was opened, present in the recipe or not.
struct ConfigNode {
  std::string path;     ///< "stage.0"
  std::string generic;  ///< "stage[]"
  std::string name;     ///< "stage"
  bool element = false;
  const toml::table* table = nullptr;
  const ConfigNode* parent = nullptr;
  std::set<std::string, std::less<>> known;
  std::vector<ConfigEntry> entries;
  std::vector<std::unique_ptr<ConfigNode>> children;
};

struct ConfigState {
  std::filesystem::path file;
  toml::table document;
  std::map<std::string, std::string> overrides;  ///< dotted path -> the assignment that set it
  ConfigNode top;
  bool reading = false;
  bool paths_may_be_absent = false;
  bool unused_keys_may_stand = false;
};

std::string join_path(const std::string& table, std::string_view key);

/// "--set a.b=c" if the value at `path` came from a flag.
std::optional<std::string> override_origin(const ConfigState& state, const std::string& path);

/// "file:line:column", or the file alone for what has no place.
std::string place(const ConfigState& state, const toml::source_region& region);

/// "an integer (5)", "a string (\"4k\")", "a table": what stands where something else was expected.
std::string found_text(const toml::node& node);

/// A parser's complaint as one line without its "Error while parsing".
std::string parse_reason(const toml::parse_error& error);

/// "a, b or c", each quoted.
std::string quoted_list(const std::vector<std::string>& words);

}  // namespace mm::detail
