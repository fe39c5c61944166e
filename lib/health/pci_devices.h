#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/health/expectation.h"
#include "lib/health/finding.h"
#include "lib/health/system_tree.h"

namespace mm::health {

/// A device on the PCI bus that matters for training.
struct PciDevice {
  enum class Kind { kGpu, kNetwork, kNvme, kSwitch };
  std::string bdf;  ///< "0000:1a:00.0"
  Kind kind = Kind::kGpu;
  std::string speed, max_speed;  ///< "32.0 GT/s PCIe"
  std::optional<int64_t> width, max_width;
  std::optional<int64_t> numa_node;
  std::optional<uint64_t> corrected, nonfatal, fatal;  ///< bus errors (AER totals)
  std::vector<std::string> path;  ///< bridges from the root complex down, then itself
};

/// GPUs, network cards and NVMe disks from /sys/bus/pci/devices.
std::vector<PciDevice> read_pci(const SystemTree& tree);

/// F11 for links below their best, F49 for bus errors. GPUs idle at lower speed, so of them only
/// the width is judged here.
std::vector<Finding> judge_pci(const std::vector<PciDevice>& devices, const Expectation& expected);

}  // namespace mm::health
