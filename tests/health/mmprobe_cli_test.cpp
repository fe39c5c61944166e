#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>

#include "lib/base/json.h"
#include "tests/health/planted_node.h"

// The program itself: streams and exit codes.

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
  const Run run = mmprobe("node --sysfs-root " + node.options().root.string());
  CHECK(run.exit_code == 0);
  CHECK(
      run.output ==
      "host    n07, Linux 6.1.0\n"
      "cpu     Xeon 8480, 2 cores usable, avx2 avx512 avx512_bf16 amx_bf16\n"
      "bf16    fast on this CPU\n"
      "ok           memory: 0.5 GiB of 1.0 GiB available, limited to 0.2 GiB by the control group\n"
      "ok           network: eth0 up 100000 Mbit/s, eth1 down\n"
      "not checked  clock: whether it is synchronised is not known\n"
      "not checked  GPUs: not asked: another machine's files are read (GPUs not checked)\n"
      "verdict healthy, as far as checked\n");
}

TEST_CASE("mmprobe node: an unhealthy node exits with 69 and says why in JSON") {
  const PlantedNode node;
  const Run run =
      mmprobe("node --json --path /no/such/place --sysfs-root " + node.options().root.string());
  CHECK(run.exit_code == 69);
  const mm::Json json = mm::Json::parse(run.output);
  CHECK(json["schema"] == 1);
  CHECK(json["healthy"] == false);
  CHECK(json["disks"][0]["problem"] == "No such file or directory");
  CHECK(json["network"][1]["speed_mbit_s"].is_null());
}

TEST_CASE("mmprobe: usage errors are 2, help is 0") {
  CHECK(mmprobe("").exit_code == 2);
  CHECK(mmprobe("node --disk-deadline-ms 0").exit_code == 2);
  CHECK(mmprobe("node --help").exit_code == 0);
}
