#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lib/health/node_report.h"

namespace mm::health::test {

/// A directory of kernel files below a temporary root; removed with the object.
class PlantedTree {
 public:
  PlantedTree() {
    // Hundreds of small files: in memory where that is possible.
    const std::filesystem::path base = std::filesystem::is_directory("/dev/shm")
                                           ? std::filesystem::path("/dev/shm")
                                           : std::filesystem::temp_directory_path();
    std::string name = (base / "mm_node_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  PlantedTree(const PlantedTree&) = delete;
  ~PlantedTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void plant(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::trunc) << content;
  }
  /// A symbolic link at `path` to `target`, both from the root.
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::filesystem::remove(root_ / path);
    std::filesystem::create_symlink(root_ / target, root_ / path);
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(root_ / path); }
  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

/// Kernel files of another, healthy node without GPUs.
class PlantedNode : public PlantedTree {
 public:
  PlantedNode() {
    plant("proc/sys/kernel/hostname", "n07\n");
    plant("proc/sys/kernel/osrelease", "6.1.0\n");
    plant("proc/cpuinfo",
          "processor\t: 0\nmodel name\t: Xeon 8480\nflags\t\t: fpu avx2 avx512f avx512bw avx512dq "
          "avx512vl avx512_bf16 amx_bf16\nprocessor\t: 1\n");
    plant("proc/meminfo",
          "MemTotal:       1048576 kB\nMemFree: 1 kB\nMemAvailable:    524288 kB\n");
    plant("proc/self/cgroup", "0::/job/step\n");
    plant("sys/fs/cgroup/cgroup.controllers", "memory\n");
    plant("sys/fs/cgroup/job/memory.max", "268435456\n");
    plant("sys/fs/cgroup/job/step/memory.max", "max\n");
    plant("sys/class/net/lo/operstate", "unknown\n");
    plant("sys/class/net/eth0/operstate", "up\n");
    plant("sys/class/net/eth0/speed", "100000\n");
    plant("sys/class/net/eth1/operstate", "down\n");
    plant("sys/class/net/eth1/speed", "-1\n");
  }
  NodeOptions options() const { return {.root = root()}; }
};

}  // namespace mm::health::test
