#include "tests/health/h100_node.h"

#include <fmt/format.h>

#include <cstdlib>

namespace mm::health::test {

H100Node::H100Node(unsigned seed) : random_(seed), seed_(seed) {
  boot_s_ = 1'780'000'000 + draw(0, 100'000);
  uptime_s_ = seed == 0 ? 500'000 : draw(600, 5'000'000);
  plant_host();
  plant_numa();
  plant_pci();
  plant_infiniband();
  plant_ethernet();
  scenario_ = {{"count", "8"},
               {"driver", "570.124.06"},
               {"gpu.*.name", "NVIDIA H100 80GB HBM3"},
               {"gpu.*.vbios", "96.00.74.00.0D"},
               {"gpu.*.links", "18"}};
  for (int i = 0; i < 8; ++i) gpu(i, "bus_id", "0000" + gpu_bdf(i));
  // As on HGX H100: 5, 4, 4 and 5 links to the four switches.
  for (int link = 0; link < 18; ++link) {
    const int to = link < 5 ? 0 : link < 9 ? 1 : link < 13 ? 2 : 3;
    scenario_[fmt::format("gpu.*.link.{}.remote", link)] = "0000" + nvswitch_bdf(to);
    scenario_[fmt::format("gpu.*.link.{}.remote_kind", link)] = "2";
  }
  plant_noise();
}

std::string H100Node::gpu_bdf(int index) {
  return fmt::format("0000:{:02x}:00.0", 0x13 + 0x10 * index);
}
std::string H100Node::nic_bdf(int index) {
  return fmt::format("0000:{:02x}:00.0", 0x14 + 0x10 * index);
}

std::string H100Node::nvswitch_bdf(int index) { return fmt::format("0000:0{}:00.0", 5 + index); }

void H100Node::plant_host() {
  std::string cpuinfo;
  for (int cpu = 0; cpu < 96; ++cpu)
    cpuinfo += fmt::format("processor\t: {}\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\n", cpu);
  cpuinfo += "flags\t\t: fpu avx2 avx512f avx512bw avx512dq avx512vl avx512_bf16 amx_bf16\n";
  plant("proc/cpuinfo", cpuinfo);
  plant("proc/sys/kernel/hostname", fmt::format("gpu{:03}\n", seed_));
  plant("proc/sys/kernel/osrelease", "5.15.0-1063\n");
  const int free_kib = draw(1'500'000'000, 2'000'000'000);
  plant("proc/meminfo",
        fmt::format("MemTotal:       2113536000 kB\nMemAvailable:   {} kB\n", free_kib));
  plant("proc/stat", fmt::format("cpu 1 2 3\nbtime {}\n", boot_s_));
  plant("proc/uptime", fmt::format("{}.50 1.00\n", uptime_s_));
  plant("proc/self/cgroup", "0::/\n");
  plant("sys/fs/cgroup/cgroup.controllers", "memory\n");
  plant("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n");
  plant("proc/self/mounts",
        "/dev/md0 / ext4 rw,relatime,errors=remount-ro 0 0\nproc /proc proc rw 0 0\n"
        "filer:/home /home nfs4 rw,vers=4.2 0 0\nfiler:/data /data nfs4 ro,vers=4.2 0 0\n");
  plant("home/.keep", "");
  plant("data/.keep", "");
}

void H100Node::plant_numa() {
  for (int node = 0; node < 2; ++node) {
    const std::string at = fmt::format("sys/devices/system/node/node{}/", node);
    plant(at + "cpulist", node == 0 ? "0-47\n" : "48-95\n");
    plant(at + "meminfo", fmt::format("Node {} MemTotal:  1056768000 kB\n", node));
    plant(at + "distance", node == 0 ? "10 21\n" : "21 10\n");
    plant(fmt::format("sys/devices/system/edac/mc/mc{}/ue_count", node), "0\n");
    plant(fmt::format("sys/devices/system/edac/mc/mc{}/ce_count", node),
          fmt::format("{}\n", draw(0, 40)));
  }
}

// Root port -> switch -> GPU and card; each switch has two of both.
void H100Node::plant_pci() {
  const auto device = [&](const std::string& bdf, int index, const char* kind) {
    const int node = index / 4, first = index / 2 * 2;
    const std::string real = fmt::format(
        "sys/devices/pci0000:{:02x}/0000:{:02x}:01.0/0000:{:02x}:00.0/{}/",
        0x10 + 0x20 * (first / 2), 0x10 + 0x20 * (first / 2), 0x11 + 0x20 * (first / 2), bdf);
    plant(real + "class", kind);
    plant(real + "current_link_speed", "32.0 GT/s PCIe\n");
    plant(real + "max_link_speed", "32.0 GT/s PCIe\n");
    plant(real + "current_link_width", "16\n");
    plant(real + "max_link_width", "16\n");
    plant(real + "numa_node", fmt::format("{}\n", node));
    plant(real + "local_cpulist", node == 0 ? "0-47\n" : "48-95\n");
    plant(real + "aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 0\n");
    plant(real + "aer_dev_correctable", fmt::format("RxErr 0\nTOTAL_ERR_COR {}\n", draw(0, 3)));
    link("sys/bus/pci/devices/" + bdf, real.substr(0, real.size() - 1));
  };
  for (int i = 0; i < 8; ++i) {
    device(gpu_bdf(i), i, "0x030200\n");
    device(nic_bdf(i), i, "0x020700\n");
  }
}

std::string H100Node::ib(int index, const std::string& file) const {
  return fmt::format("sys/class/infiniband/mlx5_{}/ports/1/{}", index, file);
}

void H100Node::plant_infiniband() {
  for (int i = 0; i < 8; ++i) {
    plant(ib(i, "state"), "4: ACTIVE\n");
    plant(ib(i, "phys_state"), "5: LinkUp\n");
    plant(ib(i, "rate"), "400 Gb/sec (4X NDR)\n");
    plant(ib(i, "link_layer"), "InfiniBand\n");
    plant(ib(i, "counters/link_downed"), fmt::format("{}\n", draw(0, 2)));
    plant(ib(i, "counters/symbol_error"), fmt::format("{}\n", draw(0, 30)));
    plant(ib(i, "counters/port_xmit_wait"), fmt::format("{}\n", draw(0, 1'000'000'000)));
    plant(ib(i, "counters/port_rcv_data"), fmt::format("{}\n", draw(0, 1'000'000'000)));
    plant(ib(i, "counters/port_xmit_data"), fmt::format("{}\n", draw(0, 1'000'000'000)));
    plant(ib(i, "counters/port_rcv_errors"), fmt::format("{}\n", draw(0, 5)));
    plant(ib(i, "hw_counters/out_of_sequence"), fmt::format("{}\n", draw(0, 50)));
    plant(ib(i, "hw_counters/lifespan"), "10\n");
    link(fmt::format("sys/class/infiniband/mlx5_{}/device", i),
         "sys/bus/pci/devices/" + nic_bdf(i));
  }
}

void H100Node::plant_ethernet() {
  plant("sys/class/net/lo/operstate", "unknown\n");
  plant("sys/class/net/eno1/operstate", "up\n");
  plant("sys/class/net/eno1/speed", "100000\n");
  plant("sys/class/net/eno1/mtu", "9000\n");
  plant("sys/class/net/eno1/carrier_down_count", fmt::format("{}\n", draw(0, 3)));
  plant("sys/class/net/eno1/statistics/rx_packets", "1000000\n");
  plant("sys/class/net/eno1/statistics/rx_errors", fmt::format("{}\n", draw(0, 10)));
}

void H100Node::plant_noise() {
  const std::vector<std::string> harmless = {
      "Linux version 5.15.0-1063",
      "nvidia-nvlink: Nvlink Core is being initialized, major device number 511",
      "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.124.06",
      "mlx5_core 0000:14:00.0: firmware version: 28.39.1002",
      "nvme nvme0: 16/0/0 default/read/poll queues",
      "EXT4-fs (md0): mounted filesystem with ordered data mode",
      "nfs: server filer OK",
      "mlx5_core 0000:24:00.0: Port module event: module 0, Cable plugged",
      "audit: type=1400 apparmor=\"STATUS\"",
      "IPv6: ADDRCONF(NETDEV_CHANGE): eno1: link becomes ready"};
  for (size_t i = 0; i < harmless.size(); ++i) {
    if (seed_ == 0 || draw(0, 2) > 0) kernel_line(harmless[i]);
  }
  for (int i = 0; i < 8; ++i) {
    gpu(i, "temperature", std::to_string(draw(25, 70)));
    gpu(i, "ecc_corrected", std::to_string(draw(0, 3) == 0 ? draw(1, 2000) : 0));
    gpu(i, "rows_corrected", std::to_string(draw(0, 9) == 0 ? 1 : 0));
    gpu(i, "pcie_replays", std::to_string(draw(0, 20)));
    gpu(i, "pcie_generation", draw(0, 1) == 0 ? "1" : "5");  // idle GPUs slow their link
    gpu(i, "memory_used", std::to_string(draw(0, 20) << 20));
    gpu(i, "clock_reasons", draw(0, 1) == 0 ? "1" : "4");  // idle, software power cap
  }
}

void H100Node::gpu(int index, const std::string& key, const std::string& value) {
  scenario_[index < 0 ? key : fmt::format("gpu.{}.{}", index, key)] = value;
}

// In kmsg's form, one second apart, the last one a minute ago.
void H100Node::kernel_line(const std::string& text) { log_.push_back(text); }

NodeOptions H100Node::options() {
  std::string text;
  for (const auto& [key, value] : scenario_) text += key + " = " + value + "\n";
  plant("nvml.scenario", text);
  ::setenv("MM_FAKE_NVML", (root() / "nvml.scenario").c_str(), 1);
  std::string records;
  for (size_t i = 0; i < log_.size(); ++i) {
    const int64_t us = (int64_t{uptime_s_} - 60 - int64_t(log_.size() - i)) * 1'000'000;
    records += fmt::format("6,{},{},-;{}\n", 1000 + i, us, log_[i]);
  }
  plant("kmsg", records);
  return {.root = root(),
          .kmsg = root() / "kmsg",
          .nvml_library = MM_FAKE_NVML_LIBRARY,
          .nccl_library = "libno-such-nccl.so",
          .expected = load_expectation("h100-8")};
}

}  // namespace mm::health::test
