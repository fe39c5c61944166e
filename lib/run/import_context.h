#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/run/import_command.h"
#include "lib/run/import_draft.h"
#include "lib/run/import_recipe.h"

namespace mm::run::detail {

/// What is said of a flag that no code maps.
struct FlagRemark {
  std::string_view key;   ///< ImportFlag::key
  std::string_view only;  ///< for this value alone (in lower case); empty: for all
  bool needless;          ///< no meaning here; else something is lost
  std::string_view reason;
};

/// The flags of a run, the recipe that comes of them, and the account of both: a flag is claimed
/// once something has been said of it, and finish() speaks of all others. Keys are
/// ImportFlag::key; of a flag that is given twice the last one counts, as in argparse.
class ImportContext {
 public:
  ImportContext(TrainCommand command, const ImportOptions& options, std::string origin);

  const TrainCommand command;
  const ImportOptions& options;
  const std::string origin;
  RecipeDraft draft;
  ImportReport report;

  /// More flags (of a DeepSpeed file); they do not replace others.
  void add(std::vector<ImportFlag> flags);

  const std::vector<ImportFlag>& all() const { return flags_; }

  bool given(std::string_view key) const { return find(key) != nullptr; }
  /// The value as text, number, truth; nothing if it is not given, or not resolved (which claims it
  /// as not mapped). Throws DataError for a value that is no number or out of bounds.
  std::optional<std::string> text(std::string_view key);
  std::optional<int64_t> integer(std::string_view key, int64_t min, int64_t max);
  std::optional<double> number(std::string_view key, double min, double max);
  /// A switch without a value is true; so are True, 1, yes.
  bool truth(std::string_view key, bool otherwise = false);
  /// Its value as written, whatever it is, for messages; "" if absent.
  std::string shown(std::string_view key) const;

  /// Claims those of `flags` that are given.
  void map(std::initializer_list<std::string_view> flags, std::string_view key,
           std::string_view setting);
  /// Sets a recipe key and claims what it came from.
  void set(std::string_view key, const std::string& value,
           std::initializer_list<std::string_view> flags, std::string remark = "");
  void leave_out(std::string_view key, const std::string& reason);
  void lose(std::string_view flag, std::string_view reason) { say(flag, reason, false); }
  void needless(std::string_view flag, std::string_view reason) { say(flag, reason, true); }
  /// Speaks of every flag that is still open, by the first remark that fits.
  void finish(std::span<const FlagRemark> remarks);

  [[noreturn]] void fail(std::string_view key, const std::string& expected) const;

 private:
  const ImportFlag* find(std::string_view key) const;
  void say(std::string_view flag, std::string_view reason, bool needless);

  std::vector<ImportFlag> flags_;
  std::set<std::string, std::less<>> claimed_;
};

}  // namespace mm::run::detail
