#include "lib/data/pack_dataset.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/bucket_options.h"
#include "lib/data/bucketing.h"
#include "lib/data/class_labels.h"
#include "lib/data/duplicates.h"
#include "lib/data/pack_shards.h"
#include "lib/data/pack_units.h"
#include "lib/data/pack_workspace.h"
#include "lib/data/plan_order.h"
#include "lib/data/sample_builder.h"
#include "lib/data/shard_layout.h"
#include "lib/text/label_names.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

/// All samples, bad rows and warnings of the units, each in source order.
struct Gathered {
  ShardInput input;
  std::vector<LedgerEntry> bad, warnings;
};

Gathered gather(std::vector<UnitTable> tables) {
  Gathered all;
  for (UnitTable& table : tables) {
    std::move(table.samples.begin(), table.samples.end(), std::back_inserter(all.input.samples));
    std::move(table.bad.begin(), table.bad.end(), std::back_inserter(all.bad));
    std::move(table.warnings.begin(), table.warnings.end(), std::back_inserter(all.warnings));
    all.input.unit_hashes.push_back(table.content_hash);
  }
  return all;
}

DuplicateReport duplicates_of(std::span<const UnitSample> samples) {
  DuplicateFinder finder;
  for (const UnitSample& s : samples) finder.add(s.row, s.key, s.repeat, s.picture_hashes);
  return finder.report([&](uint64_t row) {
    const auto found = std::lower_bound(samples.begin(), samples.end(), row,
                                        [](const UnitSample& s, uint64_t r) { return s.row < r; });
    return found == samples.end() ? std::string() : found->key;
  });
}

/// What went in is what came out: no row lost, none double.
void check_complete(const Gathered& all, const RowSet& rows) {
  RowSet done;
  for (const UnitSample& sample : all.input.samples) done.add(sample.row, sample.key);
  for (const LedgerEntry& entry : all.bad) done.add(entry.row, entry.key);
  if (done == rows) return;
  throw DataError(
      "the source gave {} rows (hash {}), {} were packed or listed as bad (hash {}): it changed "
      "while it was packed; run again",
      rows.count(), rows.hash(), done.count(), done.hash());
}

DatasetCounts count(const Gathered& all, uint64_t left_out) {
  DatasetCounts counts;
  counts.samples = all.input.samples.size();
  for (const UnitSample& sample : all.input.samples) {
    counts.tokens += static_cast<uint64_t>(sample.size.tokens);
    counts.images += static_cast<uint64_t>(sample.size.images);
    counts.targets += static_cast<uint64_t>(sample.size.targets);
    counts.longest = std::max(counts.longest, static_cast<uint64_t>(sample.size.tokens));
  }
  for (const LedgerEntry& entry : all.bad) ++(entry.skipped ? counts.skipped : counts.bad);
  counts.skipped += left_out;
  return counts;
}

/// The tokenizer of the options, or one of their classes.
struct SetTokenizer {
  std::string content;  ///< of its file
  std::vector<std::string> classes;
  std::unique_ptr<text::Tokenizer> tokenizer;
};

SetTokenizer tokenizer_of(const PackOptions& options) {
  SetTokenizer set;
  if (options.source.labels.empty()) {
    set.content = text::read_tokenizer(options.tokenizer);
    set.tokenizer = text::load_tokenizer(options.tokenizer, {.scheme = options.tokenizer_scheme});
    return set;
  }
  set.classes = class_names_of(options);
  set.content = text::label_names_file(set.classes);
  set.tokenizer = text::parse_tokenizer(set.content, "class names");
  return set;
}

TokenizerEntry copy_tokenizer(const PackOptions& options, const SetTokenizer& set,
                              PackWorkspace& workspace) {
  const text::Tokenizer& tokenizer = *set.tokenizer;
  const auto kind = text::sniff_tokenizer(set.content);
  const std::string scheme = options.tokenizer_scheme.empty()
                                 ? text::scheme_of_name(options.tokenizer)
                                 : options.tokenizer_scheme;
  const std::string name = text::tokenizer_copy_name(kind, scheme);
  workspace.board().write(workspace.set() / name, set.content);
  return {std::string(text::tokenizer_kind_name(kind)),
          describe_file(workspace.set(), name),
          tokenizer.vocab_size(),
          is_bucketed(options)
              ? -1
              : text::picture_id(*text::find_template(options.chat_template), tokenizer),
          tokenizer.bos_id(),
          tokenizer.eos_id(),
          tokenizer.pad_id(),
          set.classes};
}

PictureEntry pictures_of(const PackOptions& options) {
  if (options.text_only) return {};
  const PictureOptions& p = options.pictures;
  if (is_bucketed(options)) {
    return {.geometry = p.geometry,
            .filter = p.filter,
            .storage = p.storage,
            .varied = true,
            .buckets = bucket_shapes_of(p)};
  }
  return {p.geometry,
          p.filter,
          p.storage,
          p.side,
          p.patch,
          picture_tokens(options),
          has_varied_pictures(options)};
}

std::vector<LedgerEntry> ledger_of(const Gathered& all) {
  std::vector<LedgerEntry> ledger;
  std::merge(all.bad.begin(), all.bad.end(), all.warnings.begin(), all.warnings.end(),
             std::back_inserter(ledger),
             [](const LedgerEntry& a, const LedgerEntry& b) { return a.row < b.row; });
  return ledger;
}

/// Everything but the shards, then the manifest, then the whole set in its place.
void finish(const Gathered& all, const std::vector<ShardPlan>& plans, DatasetManifest& manifest,
            PackWorkspace& workspace) {
  const fs::path& set = workspace.set();
  write_index(set / "index.mmi", index_rows(all.input, plans));
  write_ledger(set / "ledger.jsonl", ledger_of(all));
  manifest.index = describe_file(set, "index.mmi");
  manifest.ledger = describe_file(set, "ledger.jsonl");
  workspace.board().write(set / "manifest.json", to_json(manifest).dump(2) + "\n");
  workspace.publish(files_of(manifest));
}

/// One task finishes; should it die, another one does. True if it was this one.
bool finish_or_wait(PackWorkspace& workspace, const std::function<void()>& work) {
  bool mine = false;
  poll(
      "the task that finishes the set", [] { return uint64_t{0}; },
      [&] {
        if (workspace.published()) return true;
        if (!workspace.board().claim("manifest")) return false;
        mine = true;
        work();
        return true;
      });
  return mine;
}

/// All rows of the source as samples or bad ones; refuses a source that has too many bad ones or no
/// sample at all.
Gathered gather_checked(const PackOptions& options, PackedUnits& units, double bad_limit,
                        PackWorkspace& workspace) {
  Gathered all = gather(std::move(units.tables));
  check_complete(all, units.rows);
  check_bad_limit(all.bad, all.input.samples.size(), bad_limit);
  if (!all.input.samples.empty()) return all;
  // Nothing was done that a run with better options could go on from.
  workspace.discard();
  const uint64_t rows = all.bad.size() + units.left_out;
  if (rows == 0) throw DataError("{}: nothing in it to pack", options.source.path.string());
  throw DataError("{}: no samples in it ({} rows without caption or left out)",
                  options.source.path.string(), rows);
}

/// What the manifest says of samples and options; shards and files come later.
void describe(const Gathered& all, const PackedUnits& units, const PackOptions& options,
              DatasetManifest& manifest) {
  manifest.duplicates = to_json(duplicates_of(all.input.samples));
  manifest.counts = count(all, units.left_out);
  manifest.source_rows = {units.rows.count(), units.rows.hash()};
  manifest.pictures = pictures_of(options);
  if (is_bucketed(options))
    manifest.bucketing = to_json(bucketing_of(all.input.samples, options.pictures));
  manifest.chat_template = options.chat_template;
  manifest.max_length = options.max_length;
  manifest.options = canonical_options(options);
}

PackedUnits packed_units(const PackOptions& options, const SampleBuilder& builder,
                         const PackRun& run, PackWorkspace& workspace) {
  try {
    return pack_units(options, builder, run, workspace);
  } catch (const Error&) {
    workspace.discard_if_unused();
    throw;
  }
}

PackResult pack_together(const PackOptions& options, const Json& canonical, const PackRun& run) {
  const SetTokenizer tokenizer = tokenizer_of(options);
  const SampleBuilder builder(options, *tokenizer.tokenizer);
  PackWorkspace workspace(run.output, canonical, run.dead_after_s);
  if (workspace.published()) throw IoError("{}: is there by now", run.output.string());
  PackedUnits units = packed_units(options, builder, run, workspace);
  PackResult result{.units_reused = units.reused, .units = units.tables.size()};
  Gathered all = gather_checked(options, units, run.bad_limit, workspace);
  DatasetManifest& manifest = result.manifest;
  describe(all, units, options, manifest);
  sort_for_shards(all.input.samples);
  all.input.order = options.for_plan.empty() ? order_by_length(all.input.samples.size())
                                             : order_of_plan(options.for_plan, all.input.samples);
  const auto plans = plan_shards(all.input, options.shard_bytes);
  manifest.shards = pack_shards(all.input, plans, run, workspace);
  manifest.tokenizer = copy_tokenizer(options, tokenizer, workspace);
  result.by_other = !finish_or_wait(workspace, [&] { finish(all, plans, manifest, workspace); });
  if (result.by_other) manifest = read_manifest(run.output);
  return result;
}

}  // namespace

PackResult pack_dataset(const PackOptions& options, const PackRun& run) {
  check(options);
  const Json canonical = canonical_options(options);
  if (already_packed(run.output, canonical))
    return {.manifest = read_manifest(run.output), .was_there = true};
  try {
    return pack_together(options, canonical, run);
  } catch (const std::exception&) {
    // When the others took this task for dead and finished without it, its files are gone.
    if (!already_packed(run.output, canonical)) throw;
    return {.manifest = read_manifest(run.output), .by_other = true};
  }
}

}  // namespace mm::data
