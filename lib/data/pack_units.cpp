#include "lib/data/pack_units.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/thread_pool.h"
#include "lib/data/unit_walk.h"

namespace mm::data {
namespace {

std::string work_name(uint32_t unit) { return fmt::format("unit-{:06}", unit); }

/// What this task knows of all units; many threads put.
class UnitBook {
 public:
  /// Called for each unit of the first pass.
  void expect(uint32_t unit, uint64_t records) {
    const std::scoped_lock lock(mutex_);
    missing_.emplace(unit, records);
  }
  void put(uint32_t unit, UnitTable table, bool was_there) {
    const std::scoped_lock lock(mutex_);
    if (tables_.size() <= unit) tables_.resize(unit + 1);
    tables_[unit] = std::move(table);
    missing_.erase(unit);
    reused_ += was_there;
  }
  bool has(uint32_t unit) const {
    const std::scoped_lock lock(mutex_);
    return !missing_.contains(unit);
  }
  std::map<uint32_t, uint64_t> missing() const {
    const std::scoped_lock lock(mutex_);
    return missing_;
  }
  std::vector<LedgerEntry> bad() const {
    const std::scoped_lock lock(mutex_);
    std::vector<LedgerEntry> all;
    for (const UnitTable& table : tables_)
      all.insert(all.end(), table.bad.begin(), table.bad.end());
    return all;
  }
  void move_to(PackedUnits& result) {
    result.tables = std::move(tables_);
    result.reused = reused_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<UnitTable> tables_;
  std::map<uint32_t, uint64_t> missing_;  ///< with the hash of their records
  uint64_t reused_ = 0;
};

/// Counts the rows of a source while the work is under way, so that there is a time left and a
/// certain failure ends at once. Costs reading the source's texts a second time.
class RowCounter {
 public:
  explicit RowCounter(const PackOptions& options, std::function<void(int64_t)> on_total)
      : thread_([this, options, on_total = std::move(on_total)] { count(options, on_total); }) {}
  ~RowCounter() {
    stop_ = true;
    thread_.join();
  }
  /// Rows that are kept; nothing until they are counted.
  std::optional<uint64_t> total() const {
    const int64_t total = total_;
    return total < 0 ? std::nullopt : std::optional(static_cast<uint64_t>(total));
  }

 private:
  void count(const PackOptions& options, const std::function<void(int64_t)>& on_total) {
    try {
      UnitWalk walk(options);
      int64_t rows = 0;
      for (auto unit = walk.take(); !unit.items.empty() && !stop_; unit = walk.take())
        rows += static_cast<int64_t>(unit.items.size());
      if (stop_) return;
      total_ = rows;
      if (on_total) on_total(rows);
    } catch (const Error&) {
      // The pass that packs reads the same and reports it.
    }
  }
  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> total_ = -1;
  std::thread thread_;
};

bool cheap_to_count(SourceKind kind) {
  return kind == SourceKind::kFolder || kind == SourceKind::kJsonl ||
         kind == SourceKind::kLlavaJson;
}

/// The work on the units of one task.
class UnitWork {
 public:
  UnitWork(const PackOptions& options, const SampleBuilder& builder, const PackRun& run,
           PackWorkspace& workspace)
      : options_(options), builder_(builder), run_(run), workspace_(workspace) {
    if (cheap_to_count(options.source.kind)) counter_.emplace(options, run.on_total);
  }

  PackedUnits all() {
    PackedUnits result = first_pass();
    while (!book_.missing().empty()) {
      later_pass();
      wait_for_others();
    }
    book_.move_to(result);
    return result;
  }

 private:
  PackedUnits first_pass() {
    UnitWalk walk(options_);
    PackedUnits result;
    each_unit(walk, [&](const SourceUnit& unit) {
      const uint64_t records = records_hash(unit.items);
      book_.expect(unit.number, records);
      const bool mine = unit.number % static_cast<uint32_t>(run_.share.tasks) ==
                        static_cast<uint32_t>(run_.share.task);
      if (read(unit.number, records, mine ? UnitCheck::kAll : UnitCheck::kTable)) return;
      if (mine && workspace_.board().claim(work_name(unit.number))) build(unit, records);
    });
    walk.filter().check_all_seen();
    result.rows = walk.rows();
    result.left_out = walk.filter().left_out();
    return result;
  }

  /// Whatever is still missing and free. Reads the source again: only units that are free cost more
  /// than that.
  void later_pass() {
    UnitWalk walk(options_);
    each_unit(walk, [&](const SourceUnit& unit) {
      if (book_.has(unit.number)) return;
      const uint64_t records = records_hash(unit.items);
      if (read(unit.number, records, UnitCheck::kTable)) return;
      if (workspace_.board().claim(work_name(unit.number))) build(unit, records);
    });
  }

  /// Until no unit is missing, or one is free because its owner died.
  void wait_for_others() {
    poll(
        "units of other tasks", [&] { return book_.missing().size(); },
        [&] {
          bool go = true;
          for (const auto& [unit, records] : book_.missing()) {
            if (read(unit, records, UnitCheck::kTable)) continue;
            if (workspace_.board().is_free(work_name(unit))) return true;
            go = false;
          }
          if (workspace_.published()) throw IoError("the set was finished by other tasks");
          return go;
        });
  }

  template <typename Body>
  void each_unit(UnitWalk& walk, const Body& body) {
    const int threads = run_.threads > 0 ? run_.threads : usable_cores();
    std::atomic<bool> failed = false;
    parallel_for(static_cast<size_t>(threads), threads, [&](size_t) {
      try {
        for (auto unit = walk.take(); !failed && !unit.items.empty(); unit = walk.take())
          body(unit);
      } catch (...) {
        failed = true;
        throw;
      }
    });
  }

  bool read(uint32_t unit, uint64_t records, UnitCheck check) {
    auto table = read_unit(workspace_.unit_path(unit), records, unit, check);
    if (!table) return false;
    if (check == UnitCheck::kAll && run_.on_rows)
      run_.on_rows(static_cast<int64_t>(table->samples.size() + table->bad.size()));
    put(unit, std::move(*table), true);
    return true;
  }

  void put(uint32_t unit, UnitTable table, bool was_there) {
    bad_ += static_cast<uint64_t>(std::count_if(table.bad.begin(), table.bad.end(),
                                                [](const auto& entry) { return !entry.skipped; }));
    book_.put(unit, std::move(table), was_there);
    // Bad samples only become more: with so many of all rows, nothing can mend it.
    const auto total = counter_ ? counter_->total() : std::nullopt;
    if (!total || static_cast<double>(bad_) <= run_.bad_limit * static_cast<double>(*total)) return;
    const auto bad = book_.bad();
    check_bad_limit(bad, *total - std::min<uint64_t>(*total, bad.size()), run_.bad_limit);
  }

  void build(const SourceUnit& unit, uint64_t records) {
    UnitWriter writer(workspace_.board().aside(work_name(unit.number)));
    for (const SourceItem& item : unit.items) {
      const auto* record = std::get_if<Record>(&item);
      writer.add(record != nullptr ? UnitOutcome(builder_.build(*record))
                                   : UnitOutcome(std::get<LedgerEntry>(item)));
    }
    put(unit.number, writer.finish(workspace_.unit_path(unit.number), records, unit.number), false);
    if (run_.on_rows) run_.on_rows(static_cast<int64_t>(unit.items.size()));
  }

  const PackOptions& options_;
  const SampleBuilder& builder_;
  const PackRun& run_;
  PackWorkspace& workspace_;
  UnitBook book_;
  std::atomic<uint64_t> bad_ = 0;
  std::optional<RowCounter> counter_;
};

}  // namespace

PackedUnits pack_units(const PackOptions& options, const SampleBuilder& builder, const PackRun& run,
                       PackWorkspace& workspace) {
  return UnitWork(options, builder, run, workspace).all();
}

}  // namespace mm::data
