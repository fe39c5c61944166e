#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/config_options.h"
#include "lib/base/config_table.h"

namespace mm {

/// One key that was read: what docs and `--help` say about it. `key` is generic: "stage[].lr" for
/// all elements.
struct ConfigKey {
  std::string key;
  std::string type;      ///< "integer >= 1", "one of a, b", "path"
  std::string fallback;  ///< as TOML text; "required" or "none" without
  std::string doc;
};

/// A TOML recipe that remembers where everything stands. Every complaint is a UsageError of one
/// line that begins with `file:line:column: ` (or `--set a.b=c: ` for what a flag replaced) and
/// names the key and what was expected.
///
/// Use: load, apply_override per `--set`, read all through root(), then root().finish() so that
/// unknown keys are refused, then to_toml() for the resolved recipe. Not thread-safe. Copies share
/// one document.
class ConfigDocument {
 public:
  /// Relative paths in the recipe are relative to its directory.
  static ConfigDocument load(const std::filesystem::path& file);
  /// `name` stands in messages; its directory is the base of relative paths.
  static ConfigDocument parse(std::string_view text, const std::filesystem::path& name);

  /// `assignment` is "a.b=value": a TOML value, or else a bare string. "stage.0.lr" and
  /// "stage.pretrain.lr" (by the `name` key) reach an element of [[stage]]. Tables on the way are
  /// made. Relative paths in it are relative to the current directory. Only before root().
  void apply_override(std::string_view assignment);

  /// From now on a path that must exist may be absent: to check a recipe before its files are
  /// there.
  void let_paths_be_absent();

  /// From now on ConfigTable::refuse_unused passes: for recipes of runs that were made before it
  /// refused a key.
  void let_unused_keys_stand();

  ConfigTable root();

  /// Everything read so far, defaults included, as a recipe that reads the same; in order of first
  /// reading. Paths are absolute.
  std::string to_toml() const;
  /// Every key read so far, each generic name once, in order of first reading.
  std::vector<ConfigKey> reference() const;

 private:
  explicit ConfigDocument(std::shared_ptr<detail::ConfigState> state);
  std::shared_ptr<detail::ConfigState> state_;
};

/// A Markdown table of the keys, one section per recipe table.
std::string reference_markdown(const std::vector<ConfigKey>& keys);

}  // namespace mm
