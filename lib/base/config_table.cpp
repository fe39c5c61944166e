#include "lib/base/config_table.h"

#include <algorithm>
#include <utility>

#include "lib/base/config_state.h"
#include "lib/base/edit_distance.h"
#include "lib/base/error.h"
#include "lib/base/text_escape.h"
#include "lib/base/toml_text.h"

namespace mm {

using detail::ConfigNode;
using detail::ConfigState;
using detail::join_path;

namespace {

struct UnknownKey {
  std::string where;
  std::string key;
};

ConfigNode* child_of(ConfigNode& node, std::string_view name, const std::string& path) {
  for (const auto& child : node.children) {
    if (child->path == path) return child.get();
  }
  auto child = std::make_unique<ConfigNode>();
  child->path = path;
  child->name = name;
  child->parent = &node;
  child->generic = join_path(node.generic, name);
  return node.children.emplace_back(std::move(child)).get();
}

std::string table_title(const ConfigNode& node) {
  return node.path.empty() ? "at the top level" : "in [" + node.path + "]";
}

// First by place in the file, so that a user mends a recipe from the top; flags last.
void check_known(const ConfigState& state, const ConfigNode& node) {
  if (node.table != nullptr) {
    const toml::key* first = nullptr;
    for (auto&& [key, value] : *node.table) {
      if (node.known.contains(key.str())) continue;
      const bool earlier = first == nullptr ||
                           (key.source().begin &&
                            (!first->source().begin || key.source().begin < first->source().begin));
      if (earlier) first = &key;
    }
    if (first != nullptr) {
      const std::string key(first->str());
      const auto flag = detail::override_origin(state, join_path(node.path, key));
      const std::string where = flag ? *flag : detail::place(state, first->source());
      throw UsageError("{}: unknown key \"{}\" {}{}", where, escape_text(key), table_title(node),
                       suggestion(key, std::vector(node.known.begin(), node.known.end())));
    }
  }
  for (const auto& child : node.children) check_known(state, *child);
}

}  // namespace

ConfigTable::ConfigTable(std::shared_ptr<ConfigState> state, ConfigNode* node)
    : state_(std::move(state)), node_(node) {}

ConfigTable ConfigTable::table(std::string_view key) {
  node_->known.emplace(key);
  ConfigNode* child = child_of(*node_, key, join_path(node_->path, key));
  const toml::node* value = node_->table ? node_->table->get(key) : nullptr;
  if (value != nullptr && !value->is_table()) {
    fail(key, "expected a table, found " + detail::found_text(*value));
  }
  child->table = value ? value->as_table() : nullptr;
  return {state_, child};
}

std::vector<ConfigTable> ConfigTable::array_of_tables(std::string_view key) {
  node_->known.emplace(key);
  const toml::node* value = node_->table ? node_->table->get(key) : nullptr;
  if (value == nullptr) return {};
  const toml::array* array = value->as_array();
  if (array == nullptr) {
    fail(key, fmt::format("expected a list of tables ([[{}]]), found {}", key,
                          detail::found_text(*value)));
  }
  std::vector<ConfigTable> tables;
  for (size_t i = 0; i < array->size(); ++i) {
    const std::string name = fmt::format("{}.{}", key, i);
    const toml::table* element = (*array)[i].as_table();
    if (element == nullptr) {
      fail(name, "expected a table, found " + detail::found_text((*array)[i]));
    }
    ConfigNode* child = child_of(*node_, key, join_path(node_->path, name));
    child->generic = join_path(node_->generic, key) + "[]";
    child->element = true;
    child->table = element;
    tables.push_back({state_, child});
  }
  return tables;
}

bool ConfigTable::has(std::string_view key) const {
  return node_->table != nullptr && node_->table->contains(key);
}

bool ConfigTable::present() const { return node_->table != nullptr; }

std::vector<std::string> ConfigTable::keys() const {
  std::vector<std::string> names;
  if (node_->table == nullptr) return names;
  for (auto&& [key, value] : *node_->table) names.emplace_back(key.str());
  std::sort(names.begin(), names.end());
  return names;
}

void ConfigTable::finish() const { check_known(*state_, *node_); }

const std::string& ConfigTable::path() const { return node_->path; }

std::string ConfigTable::where(std::string_view key) const {
  const std::string full = join_path(node_->path, key);
  if (const auto flag = detail::override_origin(*state_, full)) return *flag;
  if (node_->table != nullptr) {
    const toml::node* value = node_->table->get(key);
    const size_t dot = key.rfind('.');  // "stage.1": an element of a list
    if (value == nullptr && dot != std::string_view::npos)
      value = node_->table->get(key.substr(0, dot));
    if (value != nullptr) return detail::place(*state_, value->source());
    if (!node_->path.empty()) return detail::place(*state_, node_->table->source());
  }
  return state_->file.string();
}

void ConfigTable::fail(std::string_view key, std::string_view message) const {
  throw UsageError("{}: {}: {}", where(key), escape_text(join_path(node_->path, key)), message);
}

void ConfigTable::refuse_unused(std::initializer_list<std::string_view> keys,
                                std::string_view message) const {
  if (state_->unused_keys_may_stand) return;
  for (const std::string_view key : keys) {
    const auto entry =
        std::find_if(node_->entries.begin(), node_->entries.end(),
                     [&](const detail::ConfigEntry& read) { return read.key == key; });
    MM_CHECK(entry != node_->entries.end(), "{} has not been read", join_path(node_->path, key));
    if (has(key) && entry->value != entry->fallback)
      fail(key, fmt::format("has no effect {}", message));
  }
}

}  // namespace mm
