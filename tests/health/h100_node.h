#pragma once
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/health/planted_node.h"

namespace mm::health::test {

/// Kernel files, kernel log and NVML scenario of a node with eight H100 and eight InfiniBand ports:
/// two NUMA nodes, four PCIe switches with two GPUs and two cards each, one Ethernet port, NFS. It
/// is healthy; `plant`, `gpu` and `kernel_line` spoil it.
class H100Node : public PlantedTree {
 public:
  /// `seed` varies what differs between healthy nodes: times, temperatures, small counters,
  /// harmless kernel lines.
  explicit H100Node(unsigned seed = 0);

  /// Sets a key of GPU `index`'s scenario, or of the library ("count") with index -1.
  void gpu(int index, const std::string& key, const std::string& value);
  void kernel_line(const std::string& text);
  std::string ib(int device, const std::string& file) const;
  static std::string gpu_bdf(int index);
  static std::string nic_bdf(int index);
  static std::string nvswitch_bdf(int index);

  /// Writes scenario and log, tells the fake library where, and judges as kind "h100-8".
  NodeOptions options();

 private:
  void plant_host();
  void plant_numa();
  void plant_pci();
  void plant_infiniband();
  void plant_ethernet();
  void plant_noise();
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::mt19937 random_;
  unsigned seed_;
  int boot_s_ = 0, uptime_s_ = 0;
  std::map<std::string, std::string> scenario_;
  std::vector<std::string> log_;
};

}  // namespace mm::health::test
