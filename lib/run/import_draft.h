#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mm::run {

/// A recipe that is being written: keys with TOML values, each with a remark if it needs one.
class RecipeDraft {
 public:
  /// `key`: "table.key", or "stage.key" and "stage.table.key" of its one stage. `value`: TOML text.
  /// Setting a key again replaces its value.
  void set(std::string_view key, std::string value, std::string remark = "");
  std::optional<std::string> get(std::string_view key) const;
  /// A required key without a value: stands in the recipe as a comment, so that a check refuses the
  /// recipe and names it.
  void leave_out(std::string_view key, std::string reason);

  /// The recipe; `header` lines become comments at its head.
  std::string text(const std::vector<std::string>& header) const;

 private:
  struct Entry {
    std::string table, key, value, remark;
    bool present = true;
  };
  std::vector<const Entry*> of_table(std::string_view table) const;
  void write_stage(std::string& out) const;

  std::vector<Entry> entries_;
};

}  // namespace mm::run
