#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/health/finding.h"
#include "lib/health/kernel_log.h"
#include "lib/health/xid_table.h"

namespace mm::health {

struct KernelEventOptions {
  std::optional<int64_t> boot_unix_ms;  ///< turns the log's times into dates
  std::optional<double> uptime_s;
  double window_h = 24;  ///< what is older makes a warning at most
};

/// Faults that the kernel log tells: Xid, SXid, a GPU off the bus, file systems and disks in
/// trouble, hung servers, processes killed for memory, processor lockups, hardware errors, port
/// flaps. One finding per kind and place, with the time of the first line and the count; O(lines).
std::vector<Finding> judge_kernel_log(const KernelLog& log, const XidTable& table,
                                      const KernelEventOptions& options);

/// The judgement on one line, if it tells of a fault (watch asks line by line).
std::optional<Finding> judge_kernel_line(const std::string& text, const XidTable& table);

}  // namespace mm::health
