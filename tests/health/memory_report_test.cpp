#include <doctest/doctest.h>

#include "lib/health/host_report.h"
#include "tests/health/planted_node.h"

// What a job may use: the node's memory, and the least limit of all control groups above it.

using namespace mm::health;
using mm::health::test::PlantedTree;

namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

class Groups : public PlantedTree {
 public:
  Groups() { plant("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n"); }
  void version_2(const std::string& own) const {
    plant("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    plant("proc/self/cgroup", "0::" + own + "\n");
  }
  void version_1(const std::string& own) const {
    plant("proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:" + own + "\n1:name=systemd:/y\n");
  }
  void limit(const std::string& group, const std::string& text) const {
    plant("sys/fs/cgroup/" + group + "memory.max", text);
  }
  MemoryReport read() const { return read_memory(root()); }
};

}  // namespace

TEST_CASE("memory: totals in bytes; what is missing or no number is not known") {
  const Groups groups;
  CHECK(groups.read().total_bytes == 8 * kGib);
  CHECK(groups.read().available_bytes == 4 * kGib);
  groups.plant("proc/meminfo", "MemTotal: many kB\n");
  CHECK_FALSE(groups.read().total_bytes);
  CHECK_FALSE(groups.read().available_bytes);
  groups.remove("proc/meminfo");
  CHECK_FALSE(groups.read().total_bytes);
}

TEST_CASE("memory: in version 2 the least limit from the job up to the root counts") {
  const Groups groups;
  groups.version_2("/slurm/job_7/step_0");
  CHECK(groups.read().cgroup_known);
  CHECK_FALSE(groups.read().cgroup_limit_bytes);
  groups.limit("slurm/job_7/step_0/", "max\n");
  groups.limit("slurm/job_7/", "2147483648\n");
  groups.limit("slurm/", "3221225472\n");
  CHECK(groups.read().cgroup_limit_bytes == 2 * kGib);
  groups.limit("slurm/", "1073741824\n");
  CHECK(groups.read().cgroup_limit_bytes == kGib);
  groups.limit("slurm/job_7/step_0/", "536870912\n");
  CHECK(groups.read().cgroup_limit_bytes == kGib / 2);
}

TEST_CASE("memory: in version 1 the memory controller's own path and file are read") {
  const Groups groups;
  groups.version_1("/slurm/job_7");
  CHECK_FALSE(groups.read().cgroup_known);
  groups.plant("sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "4294967296\n");
  CHECK(groups.read().cgroup_known);
  CHECK(groups.read().cgroup_limit_bytes == 4 * kGib);
  // What version 1 says where there is no limit.
  groups.plant("sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(groups.read().cgroup_known);
  CHECK_FALSE(groups.read().cgroup_limit_bytes);
}

TEST_CASE("memory: limits that are no numbers, nothing or less are none") {
  const Groups groups;
  groups.version_2("/job");
  for (const char* text : {"", "0\n", "-5\n", "lots\n", "99999999999999999999\n"}) {
    CAPTURE(text);
    groups.limit("job/", text);
    CHECK_FALSE(groups.read().cgroup_limit_bytes);
  }
}

TEST_CASE("memory: odd group paths end, and read nothing outside the tree") {
  const Groups groups;
  for (const char* path : {"", "/", "//", "x", "/a//b/", "/../../etc"}) {
    CAPTURE(path);
    groups.version_2(path);
    CHECK_NOTHROW(groups.read());
  }
}

TEST_CASE("NUMA: nodes by their folders; without memory or processors they are still nodes") {
  const PlantedTree tree;
  tree.plant("proc/meminfo", "MemTotal: 1 kB\n");
  const std::string at = "sys/devices/system/node/";
  tree.plant(at + "node0/cpulist", "0-3\n");
  tree.plant(at + "node0/meminfo", "Node 0 MemTotal: 1024 kB\nNode 0 MemFree: 1 kB\n");
  tree.plant(at + "node0/distance", "10 20 30\n");
  tree.plant(at + "node10/cpulist", "\n");
  tree.plant(at + "node10/meminfo", "Node 10 MemTotal: 2048 kB\n");
  tree.plant(at + "possible", "0-10\n");
  tree.plant(at + "nodes/cpulist", "9\n");
  const HostReport host = read_host(SystemTree(tree.root()));
  REQUIRE(host.numa.size() == 2);
  CHECK(host.numa[0].cpus == "0-3");
  CHECK(host.numa[0].memory_bytes == 1024 * 1024);
  CHECK(host.numa[0].distances == std::vector<int64_t>{10, 20, 30});
  CHECK(host.numa[1].node == 10);
  CHECK(host.numa[1].cpus == "");
  CHECK(host.numa[1].distances.empty());
}
