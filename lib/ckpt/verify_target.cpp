#include "lib/ckpt/verify_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"
#include "lib/ckpt/find.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/json_scanner.h"
#include "lib/ckpt/tensor_tree.h"

namespace mm::ckpt {
namespace {

constexpr int kJsonSchema = 1;
constexpr size_t kScanBytes = size_t{1} << 20;

void scan_tensor(const SafetensorsFile& file, const TensorEntry& entry, VerifiedItem& item) {
  std::vector<std::byte> part(std::min<uint64_t>(kScanBytes, entry.size_bytes()));
  ValueCounts counts;
  for (uint64_t at = 0; at < entry.size_bytes(); at += kScanBytes) {
    const auto window =
        std::span(part).first(std::min<uint64_t>(kScanBytes, entry.size_bytes() - at));
    file.read_range(entry, at, window);
    counts += scan_values(entry.dtype, window);
  }
  item.values += counts;
  if (counts.total() > 0) {
    item.odd_tensors.push_back(fmt::format(
        "{}: tensor {}: {} NaN, {} infinite, {} BOOL neither 0 nor 1", file.path().string(),
        printable_name(entry.name), counts.nan, counts.infinite, counts.bad_bool));
  }
}

void take_file(const SafetensorsFile& file, const VerifyTargetOptions& options,
               VerifiedItem& item) {
  item.report.files += 1;
  item.report.tensors += file.tensors().size();
  if (!options.values) return;
  for (const TensorEntry& entry : file.tensors()) scan_tensor(file, entry, item);
}

void refuse(VerifiedItem& item, const Error& error) {
  item.report.problem_count += 1;
  item.report.problems.emplace_back(error.what());
}

VerifiedItem verify_foreign(const Target& target, const VerifyTargetOptions& options) {
  VerifiedItem item{target.path, {}, false, {}, {}};
  try {
    if (target.kind == TargetKind::kFile) {
      const auto file = SafetensorsFile::open(target.path);
      item.report.notes = file.notes();
      take_file(file, options, item);
    } else {
      const auto weights = HfWeights::open(target.path);
      item.report.notes = weights.notes();
      for (const auto& file : weights.files()) take_file(*file, options, item);
    }
  } catch (const DataError& error) {
    refuse(item, error);
  }
  return item;
}

VerifiedItem verify_own(const std::filesystem::path& directory,
                        const VerifyTargetOptions& options) {
  VerifiedItem item{directory,
                    verify_checkpoint(directory, options.files),
                    options.files.depth == VerifyDepth::kChecksums,
                    {},
                    {}};
  if (!options.values || !item.report.ok()) return item;
  const Manifest manifest = read_committed_manifest(directory);
  for (const FileRecord& record : manifest.files) {
    const auto file = SafetensorsFile::open(directory / record.name);
    for (const TensorEntry& entry : file.tensors()) scan_tensor(file, entry, item);
  }
  return item;
}

std::vector<VerifiedItem> verify_run(const std::filesystem::path& run_ckpt,
                                     const VerifyTargetOptions& options) {
  std::vector<VerifiedItem> items;
  for (const ListedCheckpoint& one : list_checkpoints(run_ckpt)) {
    if (one.kind.temporary) {
      items.push_back({one.path, {}, false, {}, {}});
      items.back().report.notes.emplace_back("left by a save that was not finished; not verified");
    } else {
      items.push_back(verify_own(one.path, options));
    }
  }
  return items;
}

std::string item_text(const VerifiedItem& item, const VerifyTargetOptions& options) {
  const VerifyReport& report = item.report;
  std::string out =
      fmt::format("{}  {}  {} files  {} tensors  {}\n", report.ok() ? "ok    " : "BROKEN",
                  item.path.string(), report.files, report.tensors,
                  item.checksummed ? size_text(report.bytes_read) + " compared with their checksums"
                                   : "structure only, no checksums compared");
  for (const std::string& problem : report.problems)
    out += fmt::format("  {}\n", escape_text(problem, 2000));
  if (report.problem_count > report.problems.size()) {
    out += fmt::format("  and {} more problems\n", report.problem_count - report.problems.size());
  }
  for (const std::string& line : item.odd_tensors)
    out += fmt::format("  values: {}\n", escape_text(line, 2000));
  if (options.values && report.ok() && item.odd_tensors.empty())
    out += "  values: no NaN, none infinite\n";
  for (const std::string& note : report.notes)
    out += fmt::format("  note: {}\n", escape_text(note, 2000));
  return out;
}

}  // namespace

std::vector<VerifiedItem> verify_target(const Target& target, const VerifyTargetOptions& options) {
  if (target.kind == TargetKind::kRun) return verify_run(target.path, options);
  if (target.kind == TargetKind::kCheckpoint) return {verify_own(target.path, options)};
  return {verify_foreign(target, options)};
}

bool all_ok(const std::vector<VerifiedItem>& items) {
  return std::all_of(items.begin(), items.end(),
                     [](const VerifiedItem& item) { return item.report.ok(); });
}

std::string verified_text(const std::vector<VerifiedItem>& items,
                          const VerifyTargetOptions& options) {
  std::string out;
  for (const VerifiedItem& item : items) out += item_text(item, options);
  return out;
}

Json verified_json(const std::vector<VerifiedItem>& items, const VerifyTargetOptions& options) {
  Json json;
  json["schema"] = kJsonSchema;
  json["ok"] = all_ok(items);
  json["items"] = Json::array();
  for (const VerifiedItem& item : items) {
    Json one;
    one["path"] = item.path.string();
    one["ok"] = item.report.ok();
    one["problems"] = item.report.problems;
    one["problem_count"] = item.report.problem_count;
    one["files"] = item.report.files;
    one["tensors"] = item.report.tensors;
    one["checksummed_bytes"] = item.report.bytes_read;
    one["notes"] = item.report.notes;
    if (options.values) {
      one["values"] = {{"nan", item.values.nan},
                       {"infinite", item.values.infinite},
                       {"bad_bool", item.values.bad_bool}};
      one["odd_tensors"] = item.odd_tensors;
    }
    json["items"].push_back(std::move(one));
  }
  return json;
}

}  // namespace mm::ckpt
