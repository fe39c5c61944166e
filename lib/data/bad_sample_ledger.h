#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mm::data {

/// What became of a row that the ledger names.
enum class Fate { kBad, kSkipped, kWarned };

/// A source row that gave no sample, or one to look at. `kind` is a stable word: those of lib/image
/// and lib/text
/// ("truncated", "corrupt", "not_an_image", "too_large", "no_targets", "image_count", ...), and
/// "bad_json", "bad_row", "missing", "outside_root", "bad_name", "empty_caption", "no_caption";
/// of a warning "stray_bytes", "damaged_part".
struct LedgerEntry {
  uint64_t row = 0;
  std::string key;
  std::string path;  ///< of the picture at fault as recorded; empty if the text is
  std::string kind;
  std::string message;
  bool skipped =
      false;  ///< no sample was promised (a picture without caption): not counted against the limit
  bool warned = false;  ///< packed all the same; a row may have several

  Fate fate() const { return warned ? Fate::kWarned : skipped ? Fate::kSkipped : Fate::kBad; }
};

/// One JSON object a line, in the given order. Atomic.
void write_ledger(const std::filesystem::path& path, std::span<const LedgerEntry> entries);
/// Throws DataError naming the line that is not an entry.
std::vector<LedgerEntry> read_ledger(const std::filesystem::path& path);

/// How often each kind occurs among the entries of one fate.
std::map<std::string, uint64_t> count_kinds(std::span<const LedgerEntry> entries, Fate fate);
/// "truncated 2, corrupt 1": most frequent first, equal ones by name; empty if there are none.
std::string describe_kinds(const std::map<std::string, uint64_t>& kinds);

/// Throws DataError when more than `limit` (a fraction) of all `samples` + bad entries are bad;
/// says how many of each kind and names up to 20 of them with their reasons, one a line.
void check_bad_limit(std::span<const LedgerEntry> entries, uint64_t samples, double limit);

}  // namespace mm::data
