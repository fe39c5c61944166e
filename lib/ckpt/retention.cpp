#include "lib/ckpt/retention.h"

#include <algorithm>
#include <system_error>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/find.h"

namespace mm::ckpt {
namespace {

void check(const std::error_code& error, const std::filesystem::path& path, std::string_view what) {
  if (error) throw IoError("{}: cannot {}: {}", path.string(), what, error.message());
}

void remove_tree(const std::filesystem::path& directory) {
  std::error_code error;
  // The mark goes last: a removal that is cut short again is still known as one.
  for (const auto& item : std::filesystem::directory_iterator(directory)) {
    if (item.path().filename() != kDeletedName) std::filesystem::remove_all(item.path(), error);
    check(error, item.path(), "remove");
  }
  std::filesystem::remove_all(directory, error);
  check(error, directory, "remove");
}

void delete_checkpoint(const std::filesystem::path& directory, const FaultHook& hook) {
  std::error_code error;
  std::filesystem::rename(directory / kCommitName, directory / kDeletedName, error);
  check(error, directory / kCommitName, "rename");
  fsync_directory(directory);
  if (hook) hook("retention.unmarked");
  remove_tree(directory);
  if (hook) hook("retention.deleted");
}

// Committed checkpoints that may go, oldest first.
std::vector<std::filesystem::path> superseded(const std::vector<ListedCheckpoint>& listed,
                                              const RetentionOptions& options) {
  std::vector<std::filesystem::path> due;
  uint64_t kept = 0;
  for (const ListedCheckpoint& one : listed) {
    if (!one.committed || one.kind.temporary) continue;
    const bool for_good = options.keep_every > 0 && one.kind.step % options.keep_every == 0;
    if (one.kind.replaced ? kept > 0
                          : kept >= std::max<uint64_t>(options.keep_last, 2) && !for_good) {
      due.push_back(one.path);
    } else {
      ++kept;
    }
  }
  std::reverse(due.begin(), due.end());
  return due;
}

}  // namespace

RetentionResult apply_retention(const std::filesystem::path& run_ckpt,
                                const RetentionOptions& options, const FaultHook& hook) {
  RetentionResult result;
  const std::vector<ListedCheckpoint> listed = list_checkpoints(run_ckpt);
  for (const ListedCheckpoint& one : listed) {
    if (!one.committed && std::filesystem::exists(one.path / kDeletedName)) remove_tree(one.path);
  }
  const auto due = superseded(listed, options);
  if (due.empty()) return result;
  const auto newest = std::find_if(listed.begin(), listed.end(), [](const ListedCheckpoint& one) {
    return one.committed && !one.kind.temporary;
  });
  const VerifyReport report = verify_checkpoint(newest->path, {.depth = options.verify});
  if (!report.ok()) {
    result.held_back = "the newest checkpoint is not whole: " + report.problems.front();
    return result;
  }
  for (const auto& path : due) {
    delete_checkpoint(path, hook);
    result.deleted.push_back(path);
  }
  return result;
}

}  // namespace mm::ckpt
