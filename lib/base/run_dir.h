#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/file.h"

namespace mm {

/// Names the places of a run directory; every file has one writer (rank 0 unless said otherwise).
class RunDir {
 public:
  /// Makes the directory, its folders and run.json (with a new run id) as far as they are absent.
  /// Rank 0 calls it, before the others open. Throws IoError, or DataError if the path is a file or
  /// run.json is no run's.
  static RunDir create(const std::filesystem::path& path);
  /// For all who only read or come later. Throws UsageError if it is no run directory.
  static RunDir open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  /// 16 hexadecimal digits, kept for the life of the directory: a resumed run has the same.
  const std::string& run_id() const { return run_id_; }

  std::filesystem::path recipe() const { return path_ / "recipe.toml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path verdict() const { return path_ / "verdict.json"; }
  std::filesystem::path report() const { return path_ / "report.html"; }
  std::filesystem::path log_dir() const { return path_ / "log"; }
  std::filesystem::path rank_log(int rank) const;  ///< written by that rank
  std::filesystem::path tensorboard_dir() const { return path_ / "tb"; }
  std::filesystem::path ledger_dir() const { return path_ / "ledger"; }
  std::filesystem::path checkpoint_dir() const { return path_ / "ckpt"; }
  std::filesystem::path fault_dir() const { return path_ / "fault"; }
  /// A failed rank's own verdict, written by that rank; the launcher takes message and step from
  /// it.
  std::filesystem::path rank_fault(int rank) const;

 private:
  RunDir(std::filesystem::path path, std::string run_id)
      : path_(std::move(path)), run_id_(std::move(run_id)) {}
  std::filesystem::path path_;
  std::string run_id_;
};

/// Held by the one job that may write a run directory (rank 0 takes it); the kernel frees it when
/// the process ends, however it ends. A file lock: it also holds between nodes where the file
/// system does so.
class RunLock {
 public:
  /// `owner` says who (job id). Waits up to `wait_s` for an earlier start that is still ending.
  /// Throws UsageError naming the holder's host, process, job and time.
  static RunLock take(const RunDir& run, const std::string& owner, double wait_s = 0);

 private:
  explicit RunLock(File file) : file_(std::move(file)) {}
  File file_;
};

}  // namespace mm
