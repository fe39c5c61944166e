#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/config_options.h"

namespace mm {
namespace detail {
struct ConfigState;
struct ConfigNode;
}  // namespace detail

/// A view of one table of a ConfigDocument, which may be absent (then every key has its default).
/// Reading a key marks it as known; `finish` refuses the rest. Two views of one table share that
/// knowledge, so components may read the same table.
///
/// get_X: the value, else the default, else UsageError "missing key". find_X: the value, else the
/// default, else nothing. Both throw UsageError with file, line and column for a wrong type or a
/// value out of range.
class ConfigTable {
 public:
  int64_t get_int(std::string_view key, const IntOption& option = {});
  double get_double(std::string_view key, const DoubleOption& option = {});
  bool get_bool(std::string_view key, const BoolOption& option = {});
  std::string get_string(std::string_view key, const StringOption& option = {});
  /// One of `option.words`.
  std::string get_enum(std::string_view key, const EnumOption& option);
  /// Absolute and normal: relative ones start at the recipe's directory (the current one for
  /// `--set`).
  std::filesystem::path get_path(std::string_view key, const PathOption& option = {});
  std::vector<int64_t> get_int_list(std::string_view key, const IntListOption& option = {});
  std::vector<double> get_double_list(std::string_view key, const DoubleListOption& option = {});
  std::vector<std::string> get_string_list(std::string_view key,
                                           const StringListOption& option = {});

  std::optional<int64_t> find_int(std::string_view key, const IntOption& option = {});
  std::optional<double> find_double(std::string_view key, const DoubleOption& option = {});
  std::optional<bool> find_bool(std::string_view key, const BoolOption& option = {});
  std::optional<std::string> find_string(std::string_view key, const StringOption& option = {});
  std::optional<std::string> find_enum(std::string_view key, const EnumOption& option);
  std::optional<std::filesystem::path> find_path(std::string_view key,
                                                 const PathOption& option = {});

  /// The sub-table, absent or not; marks it as known.
  ConfigTable table(std::string_view key);
  /// The elements of [[key]] in order; none if absent.
  std::vector<ConfigTable> array_of_tables(std::string_view key);

  /// Is the key (or table) written in the recipe? Does not mark it as known.
  bool has(std::string_view key) const;
  /// Is this table written in the recipe?
  bool present() const;
  /// The keys written in this table, sorted.
  std::vector<std::string> keys() const;

  /// Throws UsageError for the first key, here or in a table below that was opened, which nobody
  /// has read.
  void finish() const;

  /// Dotted name as `--set` takes it: "", "data", "stage.0".
  const std::string& path() const;
  /// Where the key's value stands: "recipes/x.toml:4:9", "--set a.b=c", or the table's or file's
  /// place if it is absent.
  std::string where(std::string_view key) const;
  /// Throws UsageError "where: path.key: message", for what only the caller can judge.
  [[noreturn]] void fail(std::string_view key, std::string_view message) const;
  /// For keys, all read, that another key leaves without effect: fails for the first one that the
  /// recipe gives another value than its default, with "has no effect" before `message`. Passes in
  /// a document that lets such keys stand.
  void refuse_unused(std::initializer_list<std::string_view> keys, std::string_view message) const;

 private:
  friend class ConfigDocument;
  ConfigTable(std::shared_ptr<detail::ConfigState> state, detail::ConfigNode* node);
  template <typename T>
  T require(std::string_view key, std::optional<T> value, const std::string& doc) const;

  std::shared_ptr<detail::ConfigState> state_;
  detail::ConfigNode* node_;
};

}  // namespace mm
