#include "lib/data/pack_dataset.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/thread_pool.h"
#include "lib/data/key_filter.h"
#include "lib/data/pack_unit.h"
#include "lib/data/pack_workspace.h"
#include "lib/data/sample_builder.h"
#include "lib/data/shard_layout.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

/// Hands out the source in units of consecutive rows; many threads may take.
class UnitQueue {
 public:
  explicit UnitQueue(const PackOptions& options)
      : source_(open_source(options.source)), filter_(options.ids, options.exclude) {}

  struct Unit {
    uint32_t number = 0;
    std::vector<SourceItem> items;
  };

  /// Empty `items` at the end.
  Unit take() {
    const std::scoped_lock lock(mutex_);
    Unit unit{.number = units_};
    while (unit.items.size() < kUnitRecords) {
      auto item = source_->next();
      if (!item) break;
      if (filter_.keep(*item)) unit.items.push_back(std::move(*item));
    }
    if (!unit.items.empty()) ++units_;
    return unit;
  }

  const KeyFilter& filter() const { return filter_; }

 private:
  std::mutex mutex_;
  std::unique_ptr<RecordSource> source_;
  KeyFilter filter_;
  uint32_t units_ = 0;
};

/// Tables of all units, in their order.
struct Units {
  std::mutex mutex;
  std::vector<UnitTable> tables;
  uint64_t reused = 0;

  void put(uint32_t number, UnitTable table, bool was_there) {
    const std::scoped_lock lock(mutex);
    if (tables.size() <= number) tables.resize(number + 1);
    tables[number] = std::move(table);
    reused += was_there;
  }
};

void do_unit(const UnitQueue::Unit& unit, const SampleBuilder& builder, const fs::path& path,
             Units& units) {
  const uint64_t hash = records_hash(unit.items);
  if (auto table = read_unit(path, hash, unit.number)) {
    units.put(unit.number, std::move(*table), true);
    return;
  }
  std::vector<UnitOutcome> outcomes;
  for (const SourceItem& item : unit.items) {
    const auto* record = std::get_if<Record>(&item);
    outcomes.push_back(record != nullptr ? builder.build(*record)
                                         : UnitOutcome(std::get<LedgerEntry>(item)));
  }
  write_unit(path, hash, outcomes);
  auto table = read_unit(path, hash, unit.number);
  if (!table)
    throw IoError("{}: not read back as it was written; is the disk sound?", path.string());
  units.put(unit.number, std::move(*table), false);
}

void do_units(UnitQueue& queue, const SampleBuilder& builder, const PackWorkspace& workspace,
              const PackRun& run, Units& units) {
  const int threads = run.threads > 0 ? run.threads : usable_cores();
  std::atomic<bool> failed = false;
  parallel_for(static_cast<size_t>(threads), threads, [&](size_t) {
    try {
      while (!failed) {
        const auto unit = queue.take();
        if (unit.items.empty()) return;
        do_unit(unit, builder, workspace.unit_path(unit.number), units);
        if (run.on_rows) run.on_rows(static_cast<int64_t>(unit.items.size()));
      }
    } catch (...) {
      failed = true;
      throw;
    }
  });
}

/// All samples and bad rows of the units, in source order.
struct Gathered {
  std::vector<UnitSample> samples;
  std::vector<LedgerEntry> bad;
  std::vector<uint64_t> unit_hashes;
};

Gathered gather(Units& units) {
  Gathered all;
  for (UnitTable& table : units.tables) {
    std::move(table.samples.begin(), table.samples.end(), std::back_inserter(all.samples));
    std::move(table.bad.begin(), table.bad.end(), std::back_inserter(all.bad));
    all.unit_hashes.push_back(table.content_hash);
  }
  return all;
}

DatasetCounts count(const Gathered& all, uint64_t left_out) {
  DatasetCounts counts;
  counts.samples = all.samples.size();
  for (const UnitSample& sample : all.samples) {
    counts.tokens += static_cast<uint64_t>(sample.size.tokens);
    counts.images += static_cast<uint64_t>(sample.size.images);
    counts.targets += static_cast<uint64_t>(sample.size.targets);
    counts.longest = std::max(counts.longest, static_cast<uint64_t>(sample.size.tokens));
  }
  for (const LedgerEntry& entry : all.bad) ++(entry.skipped ? counts.skipped : counts.bad);
  counts.skipped += left_out;
  return counts;
}

TokenizerEntry copy_tokenizer(const PackOptions& options, const text::Tokenizer& tokenizer,
                              const fs::path& set) {
  const std::string content = read_file(options.tokenizer);
  const auto kind = text::sniff_tokenizer(content);
  const std::string name =
      kind == text::TokenizerKind::kSentencePiece ? "tokenizer.model" : "tokenizer.json";
  write_file_atomic(set / name, content);
  return {std::string(text::tokenizer_kind_name(kind)),
          describe_file(set, name),
          tokenizer.vocab_size(),
          tokenizer.image_id(),
          tokenizer.bos_id(),
          tokenizer.eos_id(),
          tokenizer.pad_id()};
}

PictureEntry pictures_of(const PackOptions& options) {
  if (options.text_only) return {};
  const PictureOptions& p = options.pictures;
  return {p.geometry, p.filter,
          p.storage,  p.side,
          p.patch,    picture_tokens(options),
          has_varied_pictures(options)};
}

/// Shards, index and ledger into `workspace.set()`; fills the manifest's entries for them.
void write_set(Gathered& all, const PackOptions& options, const PackRun& run,
               const PackWorkspace& workspace, DatasetManifest& manifest) {
  sort_for_shards(all.samples);
  const auto shards = plan_shards(all.samples, all.unit_hashes, options.shard_bytes);
  manifest.shards.resize(shards.size());
  parallel_for(shards.size(), run.threads, [&](size_t i) {
    write_shard(workspace.set(), shards[i], all.samples,
                [&](uint32_t unit) { return workspace.unit_path(unit); });
    manifest.shards[i] = {describe_file(workspace.set(), shards[i].file),
                          shards[i].end - shards[i].begin};
  });
  write_index(workspace.set() / "index.mmi", index_rows(all.samples, shards));
  write_ledger(workspace.set() / "ledger.jsonl", all.bad);
  manifest.index = describe_file(workspace.set(), "index.mmi");
  manifest.ledger = describe_file(workspace.set(), "ledger.jsonl");
}

}  // namespace

PackResult pack_dataset(const PackOptions& options, const PackRun& run) {
  check(options);
  const Json canonical = canonical_options(options);
  if (already_packed(run.output, canonical)) return {read_manifest(run.output), true, 0, 0};
  const auto tokenizer = text::load_tokenizer(options.tokenizer);
  const SampleBuilder builder(options, *tokenizer);
  UnitQueue queue(options);
  PackWorkspace workspace(run.output, canonical);
  Units units;
  do_units(queue, builder, workspace, run, units);
  queue.filter().check_all_seen();

  Gathered all = gather(units);
  check_bad_limit(all.bad, all.samples.size(), run.bad_limit);
  if (all.samples.empty()) {
    throw DataError("{}: no samples in it ({} rows without caption or left out)",
                    options.source.path.string(), all.bad.size() + queue.filter().left_out());
  }
  PackResult result{.units_reused = units.reused, .units = units.tables.size()};
  DatasetManifest& manifest = result.manifest;
  manifest.counts = count(all, queue.filter().left_out());
  manifest.tokenizer = copy_tokenizer(options, *tokenizer, workspace.set());
  manifest.pictures = pictures_of(options);
  manifest.chat_template = options.chat_template;
  manifest.max_length = options.max_length;
  manifest.options = canonical;
  write_set(all, options, run, workspace, manifest);
  write_file_atomic(workspace.set() / "manifest.json", to_json(manifest).dump(2) + "\n");
  workspace.publish(files_of(manifest));
  return result;
}

}  // namespace mm::data
