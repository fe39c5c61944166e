#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lib/data/source.h"
#include "tests/data/tiny_dataset.h"

namespace mm::data::test {

inline std::vector<SourceItem> read_all(const SourceOptions& options) {
  std::vector<SourceItem> items;
  const auto source = open_source(options);
  while (auto item = source->next()) items.push_back(std::move(*item));
  return items;
}

/// All rows of a file with this content.
inline std::vector<SourceItem> read_text(SourceKind kind, std::string_view text) {
  const TempDir dir;
  mm::write_file_atomic(dir / "in", text);
  return read_all({.kind = kind, .path = dir / "in"});
}

/// Kind of a refused row, or "" for a record.
inline std::string kind_of(const SourceItem& item) {
  const auto* entry = std::get_if<LedgerEntry>(&item);
  return entry == nullptr ? "" : entry->kind;
}

inline std::vector<std::string> kinds_of(const std::vector<SourceItem>& items) {
  std::vector<std::string> kinds;
  for (const auto& item : items) kinds.push_back(kind_of(item));
  return kinds;
}

inline const Record& record(const SourceItem& item) { return std::get<Record>(item); }

/// Keys of the records in order.
inline std::vector<std::string> keys_of(const std::vector<SourceItem>& items) {
  std::vector<std::string> keys;
  for (const auto& item : items) {
    if (const auto* found = std::get_if<Record>(&item)) keys.push_back(found->key);
  }
  return keys;
}

/// Text of the last turn.
inline const std::string& answer(const SourceItem& item) {
  return record(item).conversation.turns.back().text;
}

}  // namespace mm::data::test
