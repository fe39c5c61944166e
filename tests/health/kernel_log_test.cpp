#include "lib/health/kernel_log.h"

#include <doctest/doctest.h>

#include "lib/health/kernel_events.h"
#include "tests/health/planted_node.h"

using namespace mm::health;
using mm::health::test::PlantedTree;

TEST_CASE("kernel log: records, dmesg, syslog and bare lines") {
  CHECK(parse_kernel_line("6,1234,5678901,-;text here").uptime_s == doctest::Approx(5.678901));
  CHECK(parse_kernel_line("6,1234,5678901,-;text here").text == "text here");
  CHECK(parse_kernel_line("[   12.345678] text").uptime_s == doctest::Approx(12.345678));
  CHECK(parse_kernel_line("[   12.345678] text").text == "text");
  const KernelLine line = parse_kernel_line("Jan  1 12:00:00 n1 kernel: [ 99.5] NVRM: Xid");
  CHECK(line.uptime_s == doctest::Approx(99.5));
  CHECK(line.text == "NVRM: Xid");
  CHECK_FALSE(parse_kernel_line("plain; text").uptime_s);
  CHECK(parse_kernel_line("[x] y").text == "[x] y");
  CHECK(parse_kernel_line("").text.empty());
}

TEST_CASE(
    "kernel log: a file is read, further lines of a record are left out, an absent one is said") {
  const PlantedTree tree;
  tree.plant("kmsg", "6,1,1000000,-;one\n SUBSYSTEM=pci\n6,2,2000000,-;two\n");
  const KernelLog log = read_kernel_log(tree.root() / "kmsg");
  CHECK(log.checked);
  REQUIRE(log.lines.size() == 2);
  CHECK(log.lines[1].text == "two");
  const KernelLog absent = read_kernel_log(tree.root() / "none");
  CHECK_FALSE(absent.checked);
  CHECK(absent.problem.ends_with("No such file or directory"));
}

TEST_CASE("kernel log: every class of line is recognised") {
  const XidTable table = load_xid_table();
  const auto code = [&](const char* text) {
    const auto found = judge_kernel_line(text, table);
    return found ? found->code : std::string("none");
  };
  CHECK(code("NVRM: The NVIDIA GPU 0000:5b:00.0: GPU has fallen off the bus.") == "F17");
  CHECK(code("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30") == "F12");
  CHECK(code("nfs: server filer not responding, still trying") == "F19");
  CHECK(code("EXT4-fs (md0): Remounting filesystem read-only") == "F48");
  CHECK(code("nvme nvme2: I/O 23 QID 4 timeout, reset controller") == "F54");
  CHECK(code("nvme nvme2: Disabling device after reset failure: -19") == "F54");
  CHECK(code("Buffer I/O error on dev nvme2n1, logical block 0") == "F54");
  CHECK(code("EXT4-fs error (device md0): ext4_find_entry") == "F54");
  CHECK(code("LustreError: 11-0: store-OST0001: operation failed") == "F18");
  CHECK(code("oom-kill:constraint=CONSTRAINT_MEMCG,task=python") == "F36");
  CHECK(code("watchdog: BUG: soft lockup - CPU#3 stuck for 22s!") == "F58");
  CHECK(code("INFO: task python:77 blocked for more than 120 seconds.") == "F58");
  CHECK(code("mce: [Hardware Error]: Machine check events logged") == "F50");
  CHECK(code("mlx5_core 0000:14:00.0: Detected insufficient power on the PCIe slot (27W).") ==
        "F11");
  CHECK(code("mlx5_core 0000:14:00.0: Port module event[error]: module 0, Cable error, High "
             "Temperature") == "F16");
  CHECK(code("mlx5_core 0000:14:00.0: ACCESS_REG(0x805) op_mod(0x1) failed") == "F49");
  CHECK(code("mlx5_core 0000:24:00.0 ib1: Link down") == "F10");
  CHECK(code("nfs: server filer OK") == "none");
}

TEST_CASE("kernel log: the first time and the count are told; what is long ago is a warning") {
  const XidTable table = load_xid_table();
  KernelLog log{.checked = true};
  for (const double t : {100.0, 200.0})
    log.lines.push_back({t, "NVRM: Xid (PCI:0000:1b:00): 79, x"});
  const KernelEventOptions now{.boot_unix_ms = 1'000'000, .uptime_s = 300};
  const Finding found = judge_kernel_log(log, table, now).front();
  CHECK(found.level == Level::kBad);
  CHECK(found.since_unix_ms == 1'100'000);
  CHECK(found.what.ends_with(", 2 times"));
  const KernelEventOptions later{.boot_unix_ms = 1'000'000, .uptime_s = 300'000};
  CHECK(judge_kernel_log(log, table, later).front().level == Level::kWarn);
}
