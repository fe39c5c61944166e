#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/config.h"

namespace mm::health {

/// What a node of one kind should be; nothing: not expected, so not judged. Read from a TOML file
/// (docs/operations.md lists the keys) or a built-in one by name.
struct Expectation {
  std::string name = "any";

  struct Node {
    std::optional<int64_t> cores_min, memory_gib_min, numa_nodes;
    std::optional<std::string> kernel_min;
    double memory_free_min = 0.1;  ///< share of the memory that must be available
  } node;
  struct Gpu {
    std::optional<int64_t> count;
    std::optional<std::string> name;  ///< the start of NVML's name
    std::optional<int64_t> memory_gib_min, pcie_generation, pcie_width, nvlinks;
    std::optional<std::string> driver_min, cuda_min;
    int64_t memory_used_mib_max = 64;  ///< before a job
    int64_t temperature_c_max = 87;
    int64_t ecc_corrected_max = 20'000'000;
    int64_t pcie_replays_max = 1000;
    int64_t nvlink_errors_max = 0;  ///< CRC errors, replays and recoveries of one link
  } gpu;
  struct Infiniband {
    std::optional<int64_t> ports, rate_gbit_s;
    std::vector<std::string> ignore;  ///< devices that are not judged
    int64_t link_downed_max = 2;      ///< since the driver loaded
    int64_t errors_max = 100;         ///< symbol, integrity, receive errors and recoveries, each
  } infiniband;
  struct Ethernet {
    std::vector<std::string> required;  ///< interfaces that must be up
    std::optional<int64_t> speed_mbit_s, mtu_min;
    int64_t carrier_down_max = 5;   ///< since the interface came
    double error_share_max = 1e-4;  ///< errors by packets
  } ethernet;
  struct Pcie {
    bool full_width = true;  ///< network cards and disks must run at their best width and speed
    int64_t fatal_errors_max = 0;
  } pcie;
  struct Storage {
    std::vector<std::string> mounts;  ///< must be mounted
    std::vector<std::string> paths;   ///< must be readable
    int64_t nvme_count = 0;
    double free_gib_min = 1;
    int64_t free_inodes_min = 1000;
  } storage;
  struct Memory {
    int64_t corrected_max = 10'000;  ///< by controller, since the driver loaded
  } memory;
  struct Clock {
    bool required = false;  ///< the kernel must know its clock to be synchronised
  } clock;
  struct Versions {
    std::optional<std::string> nccl_min;
  } versions;
  /// What `--full` must reach; per node unless said otherwise.
  struct Speed {
    std::optional<double> gemm_gflop_s, memory_copy_gb_s, disk_write_mb_s, disk_read_mb_s;
    /// Of each GPU.
    std::optional<double> gpu_gemm_tflop_s, gpu_memory_copy_gb_s, to_device_gb_s, to_host_gb_s;
    double tolerance = 0.05;  ///< by how much a measurement may stay below expectation or baseline
  } speed;
  /// Bus bandwidth in GB/s at the largest size; key "all_reduce" and so on.
  struct Network {
    std::optional<double> all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce,
        send_receive, pair_gb_s, pair_latency_us;
  } network;
};

/// A file, or the name of a built-in one; empty: only what every node must have. Throws UsageError
/// with file, line and key, or listing the names.
Expectation load_expectation(const std::string& file_or_name);
/// Names of the built-in ones.
std::vector<std::string> expectation_names();
/// The keys, for docs.
std::vector<ConfigKey> expectation_reference();

/// "570.124.06" against "535": field by field, as numbers; text that is no number counts as 0.
bool version_at_least(const std::string& version, const std::string& minimum);

}  // namespace mm::health
