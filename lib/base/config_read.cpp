// The typed readers of ConfigTable.
#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/config_state.h"
#include "lib/base/config_table.h"
#include "lib/base/edit_distance.h"
#include "lib/base/error.h"
#include "lib/base/text_escape.h"
#include "lib/base/toml_text.h"

namespace mm {
namespace {

using detail::ConfigNode;

// What all readers share about one key.
struct Key {
  const ConfigTable& table;
  ConfigNode& node;
  std::string_view name;

  const toml::node* value() const { return node.table ? node.table->get(name) : nullptr; }

  [[noreturn]] void expected(const std::string& what, const toml::node& found) const {
    table.fail(name, "expected " + what + ", found " + detail::found_text(found));
  }
};

// "at least 1", "1 to 10"; "" without bounds.
template <typename T>
std::string bounds_text(T min, T max) {
  const bool low = min > std::numeric_limits<T>::lowest() && std::isfinite(double(min));
  const bool high = max < std::numeric_limits<T>::max() && std::isfinite(double(max));
  if (low && high) return fmt::format("{} to {}", min, max);
  if (low) return fmt::format("at least {}", min);
  if (high) return fmt::format("at most {}", max);
  return "";
}

std::string typed(const std::string& type, const std::string& bounds) {
  return bounds.empty() ? type : type + ", " + bounds;
}

template <typename T>
void check_bounds(const Key& key, T value, T min, T max) {
  if (value >= min && value <= max) return;
  key.table.fail(key.name,
                 fmt::format("{} is out of range, expected {}", value, bounds_text(min, max)));
}

int64_t to_int(const Key& key, const toml::node& node) {
  const auto* value = node.as_integer();
  if (value == nullptr) key.expected("an integer", node);
  return value->get();
}

double to_double(const Key& key, const toml::node& node) {
  if (const auto* integer = node.as_integer()) return static_cast<double>(integer->get());
  const auto* value = node.as_floating_point();
  if (value == nullptr || !std::isfinite(value->get())) key.expected("a finite number", node);
  return value->get();
}

std::string to_string(const Key& key, const toml::node& node) {
  const auto* value = node.as_string();
  if (value == nullptr) key.expected("a string", node);
  return value->get();
}

// Notes the key and returns the value, or the default, or nothing.
template <typename T>
std::optional<T> note(const Key& key, const std::string& type, const std::string& doc,
                      std::optional<T> value, const std::optional<T>& fallback) {
  key.node.known.emplace(key.name);
  for (const detail::ConfigEntry& entry : key.node.entries) {
    if (entry.key == key.name) return value ? value : fallback;
  }
  if (!value) value = fallback;
  key.node.entries.push_back({std::string(key.name), type, fallback ? toml_text(*fallback) : "none",
                              doc, value ? std::optional(toml_text(*value)) : std::nullopt});
  return value;
}

template <typename T, typename Option, typename Convert>
std::vector<T> read_list(const Key& key, const Option& option, const Convert& convert) {
  const toml::array* array = key.value()->as_array();
  if (array == nullptr) key.expected("a list", *key.value());
  if (array->size() < option.min_count || array->size() > option.max_count) {
    const bool exact = option.min_count == option.max_count;
    const std::string wanted =
        exact ? std::to_string(option.min_count) : bounds_text(option.min_count, option.max_count);
    key.table.fail(key.name, fmt::format("{} elements, expected {}", array->size(), wanted));
  }
  std::vector<T> values;
  for (const toml::node& element : *array) values.push_back(convert(key, element));
  return values;
}

}  // namespace

template <typename T>
T ConfigTable::require(std::string_view key, std::optional<T> value, const std::string& doc) const {
  for (detail::ConfigEntry& entry : node_->entries) {
    if (entry.key == key && entry.fallback == "none") entry.fallback = "required";
  }
  if (value) return *std::move(value);
  const std::string where_text =
      node_->path.empty() ? "at the top level" : "in [" + node_->path + "]";
  // A required key that is only misspelt: say so where it stands.
  if (node_->table != nullptr) {
    const std::vector<std::string> wanted{std::string(key)};
    for (auto&& [written, node] : *node_->table) {
      if (node_->known.contains(written.str()) || !nearest_word(written.str(), wanted)) continue;
      throw UsageError("{}: unknown key \"{}\" {}; did you mean \"{}\"?",
                       detail::place(*state_, written.source()), escape_text(written.str()),
                       where_text, key);
    }
  }
  throw UsageError("{}: missing key \"{}\" {}{}", where(key), key, where_text,
                   doc.empty() ? "" : " (" + doc + ")");
}

std::optional<int64_t> ConfigTable::find_int(std::string_view name, const IntOption& option) {
  const Key key{*this, *node_, name};
  std::optional<int64_t> value;
  if (key.value() != nullptr) {
    value = to_int(key, *key.value());
    check_bounds(key, *value, option.min, option.max);
  }
  return note(key, typed("integer", bounds_text(option.min, option.max)), option.doc, value,
              option.def);
}

std::optional<double> ConfigTable::find_double(std::string_view name, const DoubleOption& option) {
  const Key key{*this, *node_, name};
  std::optional<double> value;
  if (key.value() != nullptr) {
    value = to_double(key, *key.value());
    check_bounds(key, *value, option.min, option.max);
  }
  return note(key, typed("number", bounds_text(option.min, option.max)), option.doc, value,
              option.def);
}

std::optional<bool> ConfigTable::find_bool(std::string_view name, const BoolOption& option) {
  const Key key{*this, *node_, name};
  std::optional<bool> value;
  if (const toml::node* node = key.value()) {
    if (!node->is_boolean()) key.expected("true or false", *node);
    value = node->as_boolean()->get();
  }
  return note(key, "true or false", option.doc, value, option.def);
}

std::optional<std::string> ConfigTable::find_string(std::string_view name,
                                                    const StringOption& option) {
  const Key key{*this, *node_, name};
  std::optional<std::string> value;
  if (key.value() != nullptr) {
    value = to_string(key, *key.value());
    if (value->empty() && !option.allow_empty) fail(name, "expected a string that is not empty");
  }
  return note(key, "string", option.doc, value, option.def);
}

std::optional<std::string> ConfigTable::find_enum(std::string_view name, const EnumOption& option) {
  const Key key{*this, *node_, name};
  const std::string wanted = detail::quoted_list(option.words);
  std::optional<std::string> value;
  if (const toml::node* node = key.value()) {
    if (!node->is_string()) key.expected(wanted, *node);
    value = node->as_string()->get();
    if (std::find(option.words.begin(), option.words.end(), *value) == option.words.end()) {
      const auto near = nearest_word(*value, option.words);
      fail(name, fmt::format("\"{}\" is not known, expected {}{}", escape_text(*value, 40), wanted,
                             near ? "; did you mean \"" + *near + "\"?" : ""));
    }
  }
  return note(key, wanted, option.doc, value, option.def);
}

std::optional<std::filesystem::path> ConfigTable::find_path(std::string_view name,
                                                            const PathOption& option) {
  const Key key{*this, *node_, name};
  std::optional<std::string> value;
  if (const toml::node* node = key.value()) {
    if (!node->is_string() || node->as_string()->get().empty()) key.expected("a path", *node);
    const bool from_flag =
        detail::override_origin(*state_, detail::join_path(node_->path, name)).has_value();
    const auto base = from_flag ? std::filesystem::path() : state_->file.parent_path();
    const auto resolved = std::filesystem::absolute(base / node->as_string()->get());
    value = resolved.lexically_normal().string();
    std::error_code ignored;
    if (option.must_exist && !state_->paths_may_be_absent &&
        !std::filesystem::exists(*value, ignored)) {
      fail(name, "no such file or directory: " + escape_text(*value));
    }
  }
  return note(key, "path", option.doc, value, option.def);
}

int64_t ConfigTable::get_int(std::string_view key, const IntOption& option) {
  return require(key, find_int(key, option), option.doc);
}

double ConfigTable::get_double(std::string_view key, const DoubleOption& option) {
  return require(key, find_double(key, option), option.doc);
}

bool ConfigTable::get_bool(std::string_view key, const BoolOption& option) {
  return require(key, find_bool(key, option), option.doc);
}

std::string ConfigTable::get_string(std::string_view key, const StringOption& option) {
  return require(key, find_string(key, option), option.doc);
}

std::string ConfigTable::get_enum(std::string_view key, const EnumOption& option) {
  return require(key, find_enum(key, option), option.doc);
}

std::filesystem::path ConfigTable::get_path(std::string_view key, const PathOption& option) {
  return require(key, find_path(key, option), option.doc);
}

std::vector<int64_t> ConfigTable::get_int_list(std::string_view name, const IntListOption& option) {
  const Key key{*this, *node_, name};
  std::optional<std::vector<int64_t>> value;
  if (key.value() != nullptr) {
    value = read_list<int64_t>(key, option, to_int);
    for (const int64_t element : *value) check_bounds(key, element, option.min, option.max);
  }
  const std::string type = typed("list of integers", bounds_text(option.min, option.max));
  return require(name, note(key, type, option.doc, value, option.def), option.doc);
}

std::vector<double> ConfigTable::get_double_list(std::string_view name,
                                                 const DoubleListOption& option) {
  const Key key{*this, *node_, name};
  std::optional<std::vector<double>> value;
  if (key.value() != nullptr) {
    value = read_list<double>(key, option, to_double);
    for (const double element : *value) check_bounds(key, element, option.min, option.max);
  }
  const std::string type = typed("list of numbers", bounds_text(option.min, option.max));
  return require(name, note(key, type, option.doc, value, option.def), option.doc);
}

std::vector<std::string> ConfigTable::get_string_list(std::string_view name,
                                                      const StringListOption& option) {
  const Key key{*this, *node_, name};
  std::optional<std::vector<std::string>> value;
  if (key.value() != nullptr) value = read_list<std::string>(key, option, to_string);
  return require(name, note(key, "list of strings", option.doc, value, option.def), option.doc);
}

}  // namespace mm
