#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/health/disk_probe.h"
#include "lib/health/expectation.h"
#include "lib/health/finding.h"
#include "lib/health/system_tree.h"

namespace mm::health {

/// A file system that a job may use: disks and network file systems, not the kernel's own.
struct Mount {
  std::string device, point, type, options;
  bool network = false;
  DiskSpace space;  ///< asked in a child process
  bool has_option(std::string_view option) const;
};

/// Mounts of /proc/self/mounts that matter (at most 64), each probed; all at once, so that it takes
/// `deadline_ms` at most however many hang.
std::vector<Mount> read_mounts(const SystemTree& tree, int deadline_ms);

/// F18 lost or stale, F19 hung, F48 gone read-only, for every mount; expected ones that are absent
/// are F18. Lustre's own health file counts too.
std::vector<Finding> judge_mounts(const std::vector<Mount>& mounts, const Expectation& expected);

/// F18 to F21 and F48 for paths that the user named.
std::vector<Finding> judge_paths(const std::vector<DiskSpace>& spaces, const Expectation& expected);

}  // namespace mm::health
