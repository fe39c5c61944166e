#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace mm::health {

/// Room below a path, or why that is not known.
struct DiskSpace {
  std::filesystem::path path;
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;  ///< for us, not for root
  uint64_t free_inodes = 0;
  bool read_only = false;
  bool hung = false;    ///< no answer within the deadline
  std::string problem;  ///< empty: the numbers hold
};

/// Asks in a child process, which is left behind if the mount does not answer within `deadline_ms`:
/// the caller returns in any case.
DiskSpace probe_disk(const std::filesystem::path& path, int deadline_ms = 3000);

}  // namespace mm::health
