#include "lib/base/config_override.h"

#include <charconv>

#include "lib/base/config_state.h"
#include "lib/base/edit_distance.h"
#include "lib/base/error.h"
#include "lib/base/text_escape.h"

namespace mm::detail {
namespace {

std::vector<std::string> split_key(std::string_view dotted, std::string_view assignment) {
  std::vector<std::string> parts;
  while (true) {
    const size_t dot = dotted.find('.');
    const std::string_view part = dotted.substr(0, dot);
    if (part.empty()) {
      throw UsageError(
          "--set {}: empty name in the key; expected KEY=VALUE, for example --set "
          "train.steps=100",
          assignment);
    }
    parts.emplace_back(part);
    if (dot == std::string_view::npos) return parts;
    dotted.remove_prefix(dot + 1);
  }
}

// The value as the document {x = value}; what is no TOML and does not look like it is a bare
// string.
toml::table parse_value(const std::string& value, const std::string& assignment) {
  const bool one_line = value.find_first_of("\n\r") == std::string::npos;
  try {
    if (one_line) return toml::parse("x = " + value);
  } catch (const toml::parse_error& error) {
    if (!value.empty() && std::string_view("\"'[{").find(value[0]) != std::string_view::npos) {
      throw UsageError("--set {}: not a TOML value: {}", assignment, parse_reason(error));
    }
  }
  toml::table bare;
  bare.insert("x", value);
  return bare;
}

std::vector<std::string> element_names(const toml::array& array) {
  std::vector<std::string> names;
  for (const toml::node& element : array) {
    const toml::table* table = element.as_table();
    const auto name = table ? (*table)["name"].value<std::string>() : std::nullopt;
    if (name) names.push_back(*name);
  }
  return names;
}

size_t element_index(const toml::array& array, const std::string& part, const std::string& where) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (error == std::errc() && end == part.data() + part.size()) {
    if (index < array.size()) return index;
    throw UsageError("{}: there is no element {}, the list has {} (counted from 0)", where, index,
                     array.size());
  }
  for (size_t i = 0; i < array.size(); ++i) {
    const toml::table* table = array[i].as_table();
    if (table != nullptr && (*table)["name"].value<std::string>() == part) return i;
  }
  throw UsageError("{}: no element has the name \"{}\"{}", where, escape_text(part),
                   suggestion(part, element_names(array)));
}

// One step down; tables on the way are made.
toml::node& step_into(toml::node& parent, std::string& part, const std::string& where) {
  if (toml::array* array = parent.as_array()) {
    const size_t index = element_index(*array, part, where);
    part = std::to_string(index);
    return (*array)[index];
  }
  toml::table* table = parent.as_table();
  if (table == nullptr) {
    throw UsageError("{}: \"{}\" lies in {}, expected a table", where, escape_text(part),
                     found_text(parent));
  }
  if (toml::node* child = table->get(part)) return *child;
  return table->insert(part, toml::table{}).first->second;
}

void store(toml::node& parent, std::string& part, toml::node& value, const std::string& where) {
  toml::array* array = parent.as_array();
  toml::table* table = parent.as_table();
  if (array == nullptr && table == nullptr) {
    throw UsageError("{}: \"{}\" lies in {}, expected a table", where, escape_text(part),
                     found_text(parent));
  }
  if (table != nullptr) {
    value.visit([&](auto& concrete) { table->insert_or_assign(part, std::move(concrete)); });
    return;
  }
  const size_t index = element_index(*array, part, where);
  part = std::to_string(index);
  value.visit([&](auto& concrete) {
    array->replace(array->cbegin() + static_cast<std::ptrdiff_t>(index), std::move(concrete));
  });
}

}  // namespace

void apply_override(ConfigState& state, std::string_view assignment) {
  MM_CHECK(!state.reading, "--set {} comes after the recipe was read", assignment);
  const std::string shown = escape_text(assignment, 100);
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    throw UsageError("--set {}: expected KEY=VALUE, for example --set train.steps=100", shown);
  }
  std::vector<std::string> parts = split_key(assignment.substr(0, equals), shown);
  toml::table value = parse_value(std::string(assignment.substr(equals + 1)), shown);
  const std::string where = "--set " + shown;
  toml::node* parent = &state.document;
  std::string path;
  std::vector<std::string> made;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const bool is_new = parent->is_table() && !parent->as_table()->contains(parts[i]);
    parent = &step_into(*parent, parts[i], where);
    path = join_path(path, parts[i]);
    if (is_new) made.push_back(path);
  }
  store(*parent, parts.back(), *value.get("x"), where);
  path = join_path(path, parts.back());
  // What lay below is gone, with its own flags.
  std::erase_if(state.overrides,
                [&](const auto& item) { return item.first.starts_with(path + "."); });
  state.overrides[path] = shown;
  for (const std::string& table : made) state.overrides[table] = shown;
}

}  // namespace mm::detail
