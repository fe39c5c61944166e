#pragma once
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "lib/base/env.h"

namespace mm::data {

/// Which of the processes that pack one data set this is.
struct TaskShare {
  int task = 0, tasks = 1;
};

/// From RANK and WORLD_SIZE, else SLURM_PROCID and SLURM_NTASKS (srun); one task without either.
/// Throws UsageError naming the variable that is missing its partner or out of range.
TaskShare read_task_share(const env::Lookup& lookup = env::get);

/// Who does what among the tasks that share a workspace, on a file system that all of them see. A
/// claim is a hard link, which NFS makes atomically too; nothing is locked. (Where there are no
/// hard links: an exclusive create.) A task shows that it lives by a file that it rewrites; one
/// whose file is gone, whose process on this machine is gone, or whose file has not changed for
/// `dead_after_s` on the observer's clock is dead, and what it claimed is free again. A task that
/// was only slow may then do the same work as another: harmless, since equal work gives equal bytes
/// and files appear by rename. Thread-safe.
///
///     ROOT/tasks/ID      heartbeat          ROOT/claims/WORK.G   G-th claim of WORK: holds an ID
///     ROOT/aside/ID/     files being written by that task
class TaskBoard {
 public:
  /// `dead_after_s` should exceed the time that a network file system caches attributes (60 s on
  /// NFS). Throws IoError.
  TaskBoard(std::filesystem::path root, double dead_after_s);
  ~TaskBoard();
  TaskBoard(const TaskBoard&) = delete;

  /// True for exactly one living caller. Throws IoError.
  bool claim(const std::string& work);
  /// Whether claim() has a chance: nobody has it, or who had it is dead.
  bool is_free(const std::string& work);
  /// Id of who claimed it last, as "host.pid.random"; empty if nobody did.
  std::string owner(const std::string& work) const;
  const std::string& id() const { return id_; }
  /// Where this task alone may write a file that it then renames.
  std::filesystem::path aside(std::string_view name) const { return aside_ / name; }
  /// Law 4 from `aside`: fsync, rename to `path`, fsync of its directory.
  void write(const std::filesystem::path& path, std::string_view content) const;
  /// As `write`, but false, and nothing changed, if `path` is there already: of several writers one
  /// wins.
  bool write_new(const std::filesystem::path& path, std::string_view content) const;

 private:
  /// What was last seen of another task's heartbeat, and since when it stands still.
  struct Sighting {
    std::string beat;
    double since_s = 0;
  };
  void beat_until_stopped();
  void write_beat(uint64_t count) const;
  void write_claim_source();
  bool link_claim(const std::filesystem::path& claim);
  bool is_dead(const std::string& id);
  void bury(const std::string& id) const;
  /// Number of claims of `work` so far: the last one counts.
  int claims_of(const std::string& work) const;
  std::filesystem::path claim_path(const std::string& work, int generation) const;

  const std::filesystem::path root_;
  const double dead_after_s_;
  const std::string id_;
  const std::filesystem::path aside_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  int sources_ = 0;  ///< files that claims link to; a file has a limited number of links
  std::set<std::string> mine_;
  std::map<std::string, Sighting> seen_;
  std::thread heart_;
};

}  // namespace mm::data
