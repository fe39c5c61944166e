#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mm::health {

/// Room below a path, or why that is not known.
struct DiskSpace {
  std::filesystem::path path;
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;  ///< for us, not for root
  uint64_t free_inodes = 0;
  uint64_t total_inodes = 0;
  bool read_only = false;
  bool hung = false;    ///< no answer within the deadline
  int error = 0;        ///< errno; 0: none, or hung
  std::string problem;  ///< empty: the numbers hold
};

/// Asks for the room and reads a little (a directory's first name, a file's first 4 KiB), each path
/// in a child process of its own, all at once. A child is left behind if its mount does not answer
/// within `deadline_ms`: the caller returns in any case. Results in the order of `paths`.
std::vector<DiskSpace> probe_disks(const std::vector<std::filesystem::path>& paths,
                                   int deadline_ms = 3000);
DiskSpace probe_disk(const std::filesystem::path& path, int deadline_ms = 3000);

}  // namespace mm::health
