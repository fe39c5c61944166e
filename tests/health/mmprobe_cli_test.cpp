#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "lib/base/json.h"
#include "tests/health/h100_node.h"

// The program itself: streams and exit codes.

using mm::health::test::H100Node;
using mm::health::test::PlantedNode;

namespace {

struct Run {
  int exit_code;
  std::string output;
};

Run mmprobe(const std::string& arguments) {
  FILE* pipe =
      ::popen((std::string(MM_BIN_DIR "/mmprobe ") + arguments + " 2>/dev/null").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Run run{0, {}};
  char part[4096];
  while (const size_t got = std::fread(part, 1, sizeof(part), pipe)) run.output.append(part, got);
  run.exit_code = WEXITSTATUS(::pclose(pipe));
  return run;
}

}  // namespace

TEST_CASE("mmprobe node: the text of a planted node, line by line") {
  const PlantedNode node;
  const Run run = mmprobe("node --sysfs-root " + node.root().string());
  CHECK(run.exit_code == 0);
  CHECK(run.output ==
        "host    n07, Linux 6.1.0\n"
        "cpu     Xeon 8480, 2 cores usable, avx2 avx512 avx512_bf16 amx_bf16\n"
        "bf16    fast on this CPU\n"
        "kind    any\n"
        "not checked     memory errors: the kernel counts none here (no EDAC driver)\n"
        "not checked     NUMA: the kernel shows no node\n"
        "not checked     clock: whether it is synchronised is not known\n"
        "not checked     mounts: no disk or network mount\n"
        "not checked     InfiniBand: no device\n"
        "not checked     PCIe: no device tells its link\n"
        "not checked     GPUs: not asked: another machine's files are read (GPUs not checked)\n"
        "not checked     kernel log: not asked: another machine's files are read\n"
        "ok              memory: 0.5 GiB of 1.0 GiB available, limited to 0.2 GiB by the control "
        "group\n"
        "ok              network: eth0 up 100000 Mbit/s, eth1 down\n"
        "verdict healthy, as far as checked\n");
}

TEST_CASE("mmprobe node: an unhealthy node exits with 69 and says why in JSON") {
  const PlantedNode node;
  const Run run = mmprobe("node --json --path /no/such/place --sysfs-root " + node.root().string());
  CHECK(run.exit_code == 69);
  const mm::Json json = mm::Json::parse(run.output);
  CHECK(json["schema"] == 2);
  CHECK(json["healthy"] == false);
  CHECK(json["disks"][0]["problem"] == "No such file or directory");
  CHECK(json["network"][1]["speed_mbit_s"].is_null());
}

TEST_CASE("mmprobe node: faults of an H100 node, line by line") {
  H100Node node;
  node.plant(node.ib(3, "state"), "1: DOWN\n");
  node.plant(node.ib(3, "phys_state"), "2: Polling\n");
  node.gpu(2, "clock_reasons", "0x40");
  node.options();
  ::setenv("MMPROBE_NVML", MM_FAKE_NVML_LIBRARY, 1);
  const Run run = mmprobe("node --sku h100-8 --sysfs-root " + node.root().string() + " --kmsg " +
                          (node.root() / "kmsg").string());
  ::unsetenv("MMPROBE_NVML");
  CHECK(run.exit_code == 69);
  const std::string bad =
      "BAD         F09 mlx5_3 port 1: port is down; state \"1: DOWN\", phys_state \"2: Polling\"; "
      "since unknown; action: restart without this node, or on its other rails; check cable and "
      "switch port\n";
  CHECK(run.output.find(bad) != std::string::npos);
  CHECK(run.output.find(
            "warn        F16 GPU 2 (0000:33:00.0): HW thermal slowdown; clock reasons 0x40, ") !=
        std::string::npos);
  CHECK(run.output.ends_with("verdict UNHEALTHY\n"));
}

TEST_CASE("mmprobe: usage errors are 2, help is 0") {
  CHECK(mmprobe("").exit_code == 2);
  CHECK(mmprobe("node --disk-deadline-ms 0").exit_code == 2);
  CHECK(mmprobe("node --help").exit_code == 0);
}
