#include "lib/data/verify_dataset.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "lib/base/error.h"
#include "lib/base/thread_pool.h"
#include "lib/data/bad_sample_ledger.h"
#include "lib/data/dataset.h"
#include "lib/data/row_set.h"

namespace mm::data {
namespace {

/// Collects problems under a rank that orders them: files first, then rows.
class Problems {
 public:
  void add(uint64_t rank, std::string line) {
    const std::scoped_lock lock(mutex_);
    ++count_;
    lines_.emplace(rank, std::move(line));
    if (lines_.size() > kNamedProblems) lines_.erase(std::prev(lines_.end()));
  }
  void move_to(VerifyReport& report) {
    report.problems = count_;
    for (auto& [rank, line] : lines_) report.named.push_back(std::move(line));
  }

 private:
  std::mutex mutex_;
  uint64_t count_ = 0;
  std::multimap<uint64_t, std::string> lines_;
};

std::vector<FileEntry> files_to_check(const DatasetManifest& manifest) {
  std::vector<FileEntry> files = {manifest.tokenizer.file, manifest.index, manifest.ledger};
  for (const ShardEntry& shard : manifest.shards) files.push_back(shard.file);
  return files;
}

/// Line about rows of the source that are neither sample nor ledger entry, or an empty one.
std::string check_complete(const Dataset& set) {
  const SourceRows& promised = set.manifest().source_rows;
  if (promised.hash.empty()) return {};
  RowSet there;
  for (uint64_t i = 0; i < set.rows(); ++i) there.add(set.index().row(i).source_row, set.key(i));
  for (const LedgerEntry& entry : read_ledger(set.directory() / set.manifest().ledger.file))
    if (!entry.warned) there.add(entry.row, entry.key);
  if (there.count() == promised.count && there.hash() == promised.hash) return {};
  return fmt::format(
      "manifest.json: the source had {} rows (hash {}), index and ledger hold {} (hash {})",
      promised.count, promised.hash, there.count(), there.hash());
}

void check_samples(const Dataset& set, int threads, Problems& problems, uint64_t first_rank) {
  constexpr uint64_t kChunk = 64;
  parallel_for((set.rows() + kChunk - 1) / kChunk, threads, [&](size_t chunk) {
    const uint64_t end = std::min(set.rows(), (chunk + 1) * kChunk);
    for (uint64_t row = chunk * kChunk; row < end; ++row) {
      const auto sample = set.read(row);
      if (!sample) problems.add(first_rank + row, sample.failure().message);
    }
  });
}

}  // namespace

std::string check_file(const std::filesystem::path& directory, const FileEntry& entry) {
  try {
    const FileEntry now = describe_file(directory, entry.file);
    if (now == entry) return {};
    if (now.bytes != entry.bytes) {
      return fmt::format("{}: {} bytes, the manifest says {}", entry.file, now.bytes, entry.bytes);
    }
    return fmt::format("{}: content differs (hash {}, the manifest says {})", entry.file,
                       now.xxh3_128, entry.xxh3_128);
  } catch (const IoError& error) {
    return fmt::format("{}: {}", entry.file, error.what());
  }
}

VerifyReport verify_dataset(const std::filesystem::path& directory, int threads) {
  const DatasetManifest manifest = read_manifest(directory);
  const auto files = files_to_check(manifest);
  VerifyReport report;
  Problems problems;
  parallel_for(files.size(), threads, [&](size_t i) {
    if (auto line = check_file(directory, files[i]); !line.empty())
      problems.add(i, std::move(line));
  });
  for (const FileEntry& file : files) report.bytes += file.bytes;
  report.files = files.size();
  try {
    const auto set = Dataset::open(directory);
    check_samples(*set, threads, problems, files.size() + 2);
    if (auto line = check_complete(*set); !line.empty())
      problems.add(files.size() + 1, std::move(line));
    report.samples = set->rows();
  } catch (const DataError& error) {
    problems.add(files.size(), error.what());
  } catch (const IoError& error) {
    problems.add(files.size(), error.what());
  }
  problems.move_to(report);
  return report;
}

std::string to_text(const VerifyReport& report, const std::filesystem::path& directory) {
  std::string text;
  for (const std::string& line : report.named) text += line + "\n";
  if (report.problems > report.named.size())
    text += fmt::format("and {} more\n", report.problems - report.named.size());
  return text + fmt::format("{}: {} files, {} bytes, {} samples: {}\n", directory.string(),
                            report.files, report.bytes, report.samples,
                            report.sound() ? "sound" : fmt::format("{} problems", report.problems));
}

Json to_json(const VerifyReport& report) {
  return {{"schema", 1},           {"sound", report.sound()},   {"files", report.files},
          {"bytes", report.bytes}, {"samples", report.samples}, {"problems", report.problems},
          {"named", report.named}};
}

}  // namespace mm::data
