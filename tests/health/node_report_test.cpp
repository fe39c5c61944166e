#include "lib/health/node_report.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "lib/base/file.h"

using namespace mm::health;

namespace {

// Kernel files of another node, planted below a temporary root.
class PlantedNode {
 public:
  PlantedNode() {
    std::string name = (std::filesystem::temp_directory_path() / "mm_node_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
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
  PlantedNode(const PlantedNode&) = delete;
  ~PlantedNode() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void plant(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    mm::write_file_atomic(root_ / path, content);
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(root_ / path); }
  NodeOptions options() const { return {.root = root_}; }

 private:
  std::filesystem::path root_;
};

std::string finding(const NodeReport& report, const std::string& what) {
  for (const NodeFinding& one : report.findings) {
    if (one.what != what) continue;
    return (one.verdict == Verdict::kOk    ? "ok "
            : one.verdict == Verdict::kBad ? "BAD "
                                           : "? ") +
           one.detail;
  }
  return "none";
}

}  // namespace

TEST_CASE("node: a planted healthy node is read in full") {
  const PlantedNode node;
  const NodeReport report = read_node(node.options());
  CHECK(report.host == "n07");
  CHECK(report.kernel == "6.1.0");
  CHECK(report.cpu_model == "Xeon 8480");
  CHECK(report.usable_cores == 2);
  CHECK(report.cpu_features ==
        std::vector<std::string>{"avx2", "avx512", "avx512_bf16", "amx_bf16"});
  CHECK(finding(report, "memory") ==
        "ok 0.5 GiB of 1.0 GiB available, limited to 0.2 GiB by the control group");
  CHECK(report.memory.cgroup_limit_bytes == 268435456);
  CHECK(finding(report, "network") == "ok eth0 up 100000 Mbit/s, eth1 down");
  CHECK(report.healthy());
  CHECK(node_text(report).find("bf16    fast on this CPU") != std::string::npos);
}

TEST_CASE("node: what cannot be read is said, not passed") {
  const PlantedNode node;
  node.remove("proc/meminfo");
  node.remove("sys/class/net");
  const NodeReport report = read_node(node.options());
  CHECK(finding(report, "memory") == "? /proc/meminfo not readable");
  CHECK(finding(report, "network") == "? no interface but loopback");
  CHECK(finding(report, "clock").starts_with("? "));
  CHECK(finding(report, "GPUs").starts_with("? "));
  CHECK(report.healthy());
  CHECK(node_json(report)["memory"]["total_bytes"].is_null());
}

TEST_CASE("node: no link, little memory, a lost disk are bad") {
  const PlantedNode node;
  node.plant("sys/class/net/eth0/operstate", "down");
  node.plant("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1024 kB\n");
  NodeOptions options = node.options();
  options.paths = {"/no/such/place"};
  const NodeReport report = read_node(options);
  CHECK(finding(report, "network").starts_with("BAD "));
  CHECK(finding(report, "memory").starts_with("BAD "));
  CHECK(finding(report, "disk") == "BAD /no/such/place: No such file or directory");
  CHECK_FALSE(report.healthy());
  CHECK(node_json(report)["healthy"] == false);
}

TEST_CASE("node: a disk with less room than asked for is bad") {
  const PlantedNode node;
  NodeOptions options = node.options();
  options.paths = {"/"};
  options.min_free_bytes = ~uint64_t{0};
  CHECK(finding(read_node(options), "disk").starts_with("BAD /: "));
  options.min_free_bytes = 0;
  CHECK(finding(read_node(options), "disk").starts_with("ok /: "));
}

TEST_CASE("node: GPUs come from NVML, and one that is lost is named") {
  const PlantedNode node;
  NodeOptions options = node.options();
  options.nvml_library = MM_FAKE_NVML;
  const NodeReport report = read_node(options);
  CHECK(report.gpus.checked);
  REQUIRE(report.gpus.devices.size() == 2);
  CHECK(report.gpus.devices[0].name == "Fake H100");
  CHECK(report.gpus.devices[0].memory_bytes == uint64_t{80} << 30);
  CHECK(finding(report, "GPUs") == "ok 2 found, driver 570.1");
  CHECK(finding(report, "GPU 1") == "BAD memory: GPU is lost (NVML 15)");
  CHECK_FALSE(report.healthy());
}

TEST_CASE("node: without NVML it says that GPUs were not checked, on this machine too") {
  CHECK(read_gpus("libno-such-thing.so.9").problem == "libno-such-thing.so.9 not found");
  CHECK(read_gpus("libc.so.6").problem == "libc.so.6 lacks functions of NVML");
  const NodeReport here = read_node({});
  CHECK(here.usable_cores >= 1);
  CHECK_FALSE(here.host.empty());
  CHECK(here.disks.size() == 1);
  CHECK(node_text(here).find("verdict ") != std::string::npos);
}
