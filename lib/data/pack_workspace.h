#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "lib/base/json.h"
#include "lib/data/pack_tasks.h"

namespace mm::data {

/// The directory beside the output, DATASET.partial, in which a data set grows: units/ of finished
/// records, set/ that becomes the data set by one rename, notes/ on finished shards, and what the
/// tasks that share it know of one another. Killed at any moment, the next run with the same
/// options goes on from it; several runs at once share the work.
class PackWorkspace {
 public:
  /// Makes, continues or joins it. Throws UsageError when it was begun with other options (naming
  /// the first difference); IoError.
  PackWorkspace(const std::filesystem::path& output, const Json& options, double dead_after_s);

  TaskBoard& board() { return board_; }
  std::filesystem::path unit_path(uint32_t unit) const;
  /// What a task wrote about a shard that it finished.
  std::filesystem::path note_path(const std::string& shard) const;
  const std::filesystem::path& set() const { return set_; }
  /// Whether a task has made the output: then the workspace is, or will be, gone.
  bool published() const;
  /// Removes it all: there is nothing to go on from.
  void discard();
  /// Does so unless there is a finished unit or another task: a run that failed at once leaves
  /// nothing to clear away.
  void discard_if_unused();
  /// Law 4: renames set/ to the output and removes the workspace. Files in set/ other than `files`
  /// (of an attempt with another source) are removed first. Nothing happens if another was first.
  void publish(const std::set<std::string>& files);

 private:
  std::filesystem::path output_, root_;
  TaskBoard board_;
  std::filesystem::path units_, set_, notes_;
};

/// Calls `tick` until it returns true, soon at first, then every two seconds. Throws IoError that
/// names `what` when half an hour has brought no change of `progress()`.
void poll(const std::string& what, const std::function<uint64_t()>& progress,
          const std::function<bool()>& tick);

/// Looks at the output before any work. True: it is whole and was packed with these options (a
/// workspace left by a kill between rename and removal is removed). False: nothing is there. Throws
/// UsageError if it was packed with other options, naming the first difference, or is something
/// else than a data set.
bool already_packed(const std::filesystem::path& output, const Json& options);

}  // namespace mm::data
