#include "lib/health/expectation.h"

#include <algorithm>
#include <charconv>

#include "lib/base/edit_distance.h"
#include "lib/base/error.h"
#include "lib/health/embedded.h"

namespace mm::health {
namespace {

// One table with the shorthand that all of its keys use.
class Section {
 public:
  explicit Section(ConfigTable table) : table_(std::move(table)) {}
  void read(const char* key, std::optional<int64_t>& value, const char* doc) {
    value = table_.find_int(key, {.min = 0, .doc = doc});
  }
  void read(const char* key, int64_t& value, const char* doc) {
    value = table_.get_int(key, {.def = value, .min = 0, .doc = doc});
  }
  void read(const char* key, std::optional<double>& value, const char* doc) {
    value = table_.find_double(key, {.min = 0, .doc = doc});
  }
  void read(const char* key, double& value, const char* doc) {
    value = table_.get_double(key, {.def = value, .min = 0, .doc = doc});
  }
  void read(const char* key, std::optional<std::string>& value, const char* doc) {
    value = table_.find_string(key, {.doc = doc});
  }
  void read(const char* key, bool& value, const char* doc) {
    value = table_.get_bool(key, {.def = value, .doc = doc});
  }
  void read(const char* key, std::vector<std::string>& value, const char* doc) {
    value = table_.get_string_list(key, {.def = value, .doc = doc});
  }

 private:
  ConfigTable table_;
};

void read_host(ConfigTable& root, Expectation& e) {
  Section node(root.table("node"));
  node.read("cores_min", e.node.cores_min, "cores that a job may use");
  node.read("memory_gib_min", e.node.memory_gib_min, "memory of the node, GiB");
  node.read("numa_nodes", e.node.numa_nodes, "NUMA nodes with memory");
  node.read("kernel_min", e.node.kernel_min, "oldest kernel");
  node.read("memory_free_min", e.node.memory_free_min,
            "share of the memory that must be available");
  Section memory(root.table("memory"));
  memory.read("corrected_max", e.memory.corrected_max, "corrected errors of one memory controller");
  Section clock(root.table("clock"));
  clock.read("required", e.clock.required, "the kernel must know its clock to be synchronised");
  Section versions(root.table("versions"));
  versions.read("nccl_min", e.versions.nccl_min, "oldest NCCL");
  Section pcie(root.table("pcie"));
  pcie.read("full_width", e.pcie.full_width, "network cards and disks run at their best");
  pcie.read("fatal_errors_max", e.pcie.fatal_errors_max, "fatal bus errors of one device");
}

void read_gpu(ConfigTable& root, Expectation& e) {
  Section gpu(root.table("gpu"));
  gpu.read("count", e.gpu.count, "GPUs");
  gpu.read("name", e.gpu.name, "how NVML's name begins");
  gpu.read("memory_gib_min", e.gpu.memory_gib_min, "memory of one GPU, GiB");
  gpu.read("pcie_generation", e.gpu.pcie_generation, "PCIe generation under load");
  gpu.read("pcie_width", e.gpu.pcie_width, "PCIe lanes");
  gpu.read("nvlinks", e.gpu.nvlinks, "active NVLinks of one GPU");
  gpu.read("driver_min", e.gpu.driver_min, "oldest driver");
  gpu.read("cuda_min", e.gpu.cuda_min, "oldest CUDA version that the driver serves");
  gpu.read("memory_used_mib_max", e.gpu.memory_used_mib_max, "memory in use before a job, MiB");
  gpu.read("temperature_c_max", e.gpu.temperature_c_max, "degrees Celsius");
  gpu.read("ecc_corrected_max", e.gpu.ecc_corrected_max, "corrected memory errors");
  gpu.read("pcie_replays_max", e.gpu.pcie_replays_max, "PCIe replays");
  gpu.read("nvlink_errors_max", e.gpu.nvlink_errors_max,
           "CRC errors, replays, recoveries of a link");
}

void read_network(ConfigTable& root, Expectation& e) {
  Section ib(root.table("infiniband"));
  ib.read("ports", e.infiniband.ports, "active ports");
  ib.read("rate_gbit_s", e.infiniband.rate_gbit_s, "rate of each port, Gbit/s");
  ib.read("ignore", e.infiniband.ignore, "devices that are not judged");
  ib.read("link_downed_max", e.infiniband.link_downed_max, "link losses of a port");
  ib.read("errors_max", e.infiniband.errors_max, "errors of each kind of a port");
  Section ethernet(root.table("ethernet"));
  ethernet.read("required", e.ethernet.required, "interfaces that must be up");
  ethernet.read("speed_mbit_s", e.ethernet.speed_mbit_s, "speed of the required ones, Mbit/s");
  ethernet.read("mtu_min", e.ethernet.mtu_min, "largest packet of the required ones, bytes");
  ethernet.read("carrier_down_max", e.ethernet.carrier_down_max, "link losses of an interface");
  ethernet.read("error_share_max", e.ethernet.error_share_max, "errors by packets");
}

void read_storage(ConfigTable& root, Expectation& e) {
  Section storage(root.table("storage"));
  storage.read("mounts", e.storage.mounts, "must be mounted and answer");
  storage.read("paths", e.storage.paths, "files and directories that must be readable");
  storage.read("nvme_count", e.storage.nvme_count, "NVMe disks");
  storage.read("free_gib_min", e.storage.free_gib_min, "room below each probed path, GiB");
  storage.read("free_inodes_min", e.storage.free_inodes_min, "free inodes, where there is a table");
}

void read_speeds(ConfigTable& root, Expectation& e) {
  Section speed(root.table("speed"));
  speed.read("gemm_gflop_s", e.speed.gemm_gflop_s, "fp32 product on all cores, GFLOP/s");
  speed.read("memory_copy_gb_s", e.speed.memory_copy_gb_s,
             "copy on all cores, GB/s read and written");
  speed.read("disk_write_mb_s", e.speed.disk_write_mb_s, "MB/s to disk, synchronised");
  speed.read("disk_read_mb_s", e.speed.disk_read_mb_s, "MB/s from disk, past the cache");
  speed.read("gpu_gemm_tflop_s", e.speed.gpu_gemm_tflop_s, "bf16 product on one GPU, TFLOP/s");
  speed.read("gpu_memory_copy_gb_s", e.speed.gpu_memory_copy_gb_s,
             "copy within one GPU's memory, GB/s read and written");
  speed.read("to_device_gb_s", e.speed.to_device_gb_s, "pinned memory to one GPU, GB/s");
  speed.read("to_host_gb_s", e.speed.to_host_gb_s, "one GPU to pinned memory, GB/s");
  speed.read("tolerance", e.speed.tolerance, "share by which a measurement may stay below");
  Section net(root.table("network"));
  net.read("all_reduce", e.network.all_reduce, "bus bandwidth, GB/s");
  net.read("all_gather", e.network.all_gather, "bus bandwidth, GB/s");
  net.read("reduce_scatter", e.network.reduce_scatter, "bus bandwidth, GB/s");
  net.read("all_to_all", e.network.all_to_all, "bus bandwidth, GB/s");
  net.read("broadcast", e.network.broadcast, "bus bandwidth, GB/s");
  net.read("reduce", e.network.reduce, "bus bandwidth, GB/s");
  net.read("send_receive", e.network.send_receive, "bus bandwidth, GB/s");
  net.read("pair_gb_s", e.network.pair_gb_s, "between two nodes, GB/s");
  net.read("pair_latency_us", e.network.pair_latency_us,
           "between two nodes, half a round trip, us");
}

Expectation read(ConfigDocument& document) {
  ConfigTable root = document.root();
  Expectation e;
  e.name = root.get_string("name", {.def = e.name, .doc = "of this kind of node"});
  read_host(root, e);
  read_gpu(root, e);
  read_network(root, e);
  read_storage(root, e);
  read_speeds(root, e);
  root.finish();
  return e;
}

}  // namespace

std::vector<std::string> expectation_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : embedded_skus()) names.emplace_back(name);
  return names;
}

Expectation load_expectation(const std::string& file_or_name) {
  if (file_or_name.empty()) return {};
  for (const auto& [name, text] : embedded_skus()) {
    if (name != file_or_name) continue;
    ConfigDocument document = ConfigDocument::parse(text, std::string(name) + ".toml");
    return read(document);
  }
  if (!std::filesystem::exists(file_or_name))
    throw UsageError("--sku {}: neither a file nor a built-in kind{}", file_or_name,
                     suggestion(file_or_name, expectation_names()));
  ConfigDocument document = ConfigDocument::load(file_or_name);
  return read(document);
}

std::vector<ConfigKey> expectation_reference() {
  ConfigDocument document = ConfigDocument::parse("", "sku.toml");
  read(document);
  return document.reference();
}

bool version_at_least(const std::string& version, const std::string& minimum) {
  const auto next = [](std::string_view& text) {
    int64_t value = 0;
    const size_t start = std::min(text.find_first_of("0123456789"), text.size());
    text.remove_prefix(start);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return value;
  };
  std::string_view have = version, want = minimum;
  while (!want.empty()) {
    const int64_t a = next(have), b = next(want);
    if (a != b) return a > b;
  }
  return true;
}

}  // namespace mm::health
