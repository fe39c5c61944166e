#include "lib/data/unit_walk.h"

#include <utility>

#include "lib/data/pack_unit.h"

namespace mm::data {
namespace {

void add(RowSet& rows, const SourceItem& item) {
  if (const auto* record = std::get_if<Record>(&item)) {
    rows.add(record->row, record->key);
  } else {
    const auto& entry = std::get<LedgerEntry>(item);
    rows.add(entry.row, entry.key);
  }
}

}  // namespace

UnitWalk::UnitWalk(const PackOptions& options)
    : source_(open_source(options.source)), filter_(options.ids, options.exclude) {}

SourceUnit UnitWalk::take() {
  const std::scoped_lock lock(mutex_);
  SourceUnit unit{units_, {}};
  while (unit.items.size() < kUnitRecords) {
    auto item = source_->next();
    if (!item) break;
    if (!filter_.keep(*item)) continue;
    add(rows_, *item);
    unit.items.push_back(std::move(*item));
  }
  if (!unit.items.empty()) ++units_;
  return unit;
}

}  // namespace mm::data
