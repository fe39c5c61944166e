#include "lib/base/config.h"

#include <set>
#include <utility>

#include "lib/base/config_override.h"
#include "lib/base/config_state.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/toml_text.h"

namespace mm {
namespace {

using detail::ConfigEntry;
using detail::ConfigNode;

constexpr uint64_t kMaxRecipeBytes = uint64_t{16} << 20;

// A table that is absent and gave no value stays absent, so that has() says the same when the text
// is read again. One that holds tables alone needs no header: theirs name it.
void append_toml(const ConfigNode& node, const std::string& header, std::string& out) {
  std::string own, below;
  for (const ConfigEntry& entry : node.entries) {
    if (entry.value) own += toml_key(entry.key) + " = " + *entry.value + "\n";
  }
  for (const auto& child : node.children) {
    const std::string name = toml_key(child->name);
    append_toml(*child, header.empty() ? name : header + "." + name, below);
  }
  const bool present = node.element || !own.empty() || (node.table != nullptr && below.empty());
  if (!header.empty() && present) {
    out += out.empty() ? "" : "\n";
    out += node.element ? "[[" + header + "]]\n" : "[" + header + "]\n";
  }
  out += own;
  if (!below.empty()) out += (out.empty() ? "" : "\n") + below;
}

void append_reference(const ConfigNode& node, std::set<std::string>& seen,
                      std::vector<ConfigKey>& out) {
  for (const ConfigEntry& entry : node.entries) {
    const std::string key = detail::join_path(node.generic, entry.key);
    if (seen.insert(key).second) out.push_back({key, entry.type, entry.fallback, entry.doc});
  }
  for (const auto& child : node.children) append_reference(*child, seen, out);
}

}  // namespace

ConfigDocument::ConfigDocument(std::shared_ptr<detail::ConfigState> state)
    : state_(std::move(state)) {}

ConfigDocument ConfigDocument::load(const std::filesystem::path& file) {
  std::string text;
  try {
    text = read_file(file, kMaxRecipeBytes);
  } catch (const Error& error) {
    throw UsageError("{}", error.what());  // a recipe that is not there is the user's to mend
  }
  return parse(text, file);
}

ConfigDocument ConfigDocument::parse(std::string_view text, const std::filesystem::path& name) {
  auto state = std::make_shared<detail::ConfigState>();
  state->file = name;
  try {
    state->document = toml::parse(text, std::string_view(name.native()));
  } catch (const toml::parse_error& error) {
    throw UsageError("{}: not valid TOML: {}", detail::place(*state, error.source()),
                     detail::parse_reason(error));
  }
  return ConfigDocument(std::move(state));
}

void ConfigDocument::apply_override(std::string_view assignment) {
  detail::apply_override(*state_, assignment);
}

void ConfigDocument::let_paths_be_absent() { state_->paths_may_be_absent = true; }

void ConfigDocument::let_unused_keys_stand() { state_->unused_keys_may_stand = true; }

ConfigTable ConfigDocument::root() {
  state_->reading = true;
  state_->top.table = &state_->document;
  return {state_, &state_->top};
}

std::string ConfigDocument::to_toml() const {
  std::string out;
  append_toml(state_->top, "", out);
  return out;
}

std::vector<ConfigKey> ConfigDocument::reference() const {
  std::set<std::string> seen;
  std::vector<ConfigKey> keys;
  append_reference(state_->top, seen, keys);
  return keys;
}

std::string reference_markdown(const std::vector<ConfigKey>& keys) {
  std::string out;
  std::string section = "\n";  // no table has this name, so the first key opens a section
  for (const ConfigKey& key : keys) {
    const size_t dot = key.key.rfind('.');
    const std::string table = dot == std::string::npos ? "" : key.key.substr(0, dot);
    if (table != section) {
      section = table;
      const std::string title = table.empty() ? "Top level" : "`[" + table + "]`";
      out += (out.empty() ? "### " : "\n### ") + title + "\n\n";
      out += "| key | type | default | meaning |\n| --- | --- | --- | --- |\n";
    }
    const std::string name = dot == std::string::npos ? key.key : key.key.substr(dot + 1);
    const bool is_word = key.fallback == "required" || key.fallback == "none";
    const std::string fallback = is_word ? key.fallback : "`" + key.fallback + "`";
    out += "| `" + name + "` | " + key.type + " | " + fallback + " | " + key.doc + " |\n";
  }
  return out;
}

}  // namespace mm
