#include "lib/ckpt/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <tuple>

#include "lib/base/error.h"

namespace mm::ckpt {
namespace {

std::string no_whole_one(const std::filesystem::path& run_ckpt,
                         const std::vector<PassedOver>& passed) {
  std::string text =
      fmt::format("{}: no checkpoint is whole; not starting afresh over", run_ckpt.string());
  for (const PassedOver& one : passed) {
    text += fmt::format(" {}{} ({})", &one == passed.data() ? "" : "| ",
                        one.path.filename().string(), one.reason);
  }
  return text + "; move them away to start from step 0";
}

}  // namespace

std::vector<ListedCheckpoint> list_checkpoints(const std::filesystem::path& run_ckpt) {
  std::vector<ListedCheckpoint> listed;
  if (!std::filesystem::exists(run_ckpt)) return listed;
  std::error_code error;
  for (std::filesystem::directory_iterator at(run_ckpt, error), end; !error && at != end;
       at.increment(error)) {
    const auto kind = parse_step_directory(at->path().filename().string());
    if (!kind || !at->is_directory()) continue;
    listed.push_back({at->path(), *kind, std::filesystem::exists(at->path() / kCommitName)});
  }
  if (error) throw IoError("{}: cannot list: {}", run_ckpt.string(), error.message());
  std::sort(listed.begin(), listed.end(), [](const ListedCheckpoint& a, const ListedCheckpoint& b) {
    return std::tuple(b.kind.step, a.kind.replaced, b.path) <
           std::tuple(a.kind.step, b.kind.replaced, a.path);
  });
  return listed;
}

FoundCheckpoint find_newest(const std::filesystem::path& run_ckpt, const VerifyOptions& options) {
  FoundCheckpoint found;
  bool any_step = false;
  for (const ListedCheckpoint& one : list_checkpoints(run_ckpt)) {
    if (one.kind.temporary) {
      found.passed_over.push_back({one.path, "left by a save that was not finished"});
      continue;
    }
    any_step = true;
    const VerifyReport report = verify_checkpoint(one.path, options);
    if (report.ok()) {
      found.path = one.path;
      found.manifest = read_committed_manifest(one.path);
      return found;
    }
    found.passed_over.push_back({one.path, report.problems.front()});
  }
  if (any_step) throw DataError("{}", no_whole_one(run_ckpt, found.passed_over));
  return found;
}

}  // namespace mm::ckpt
