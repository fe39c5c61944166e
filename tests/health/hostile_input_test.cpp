#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "lib/base/error.h"
#include "lib/health/baseline.h"
#include "lib/health/kernel_events.h"
#include "lib/health/nvml_devices.h"
#include "lib/health/topology.h"
#include "lib/health/watch.h"
#include "lib/health/xid_table.h"
#include "tests/health/h100_node.h"
#include "tests/health/mutations.h"

// Whatever the kernel's files, NVML, logs and tables hold: read in full or refused with our own
// error, and nothing of it reaches a terminal as it is.

using namespace mm::health;
using mm::health::test::H100Node;
using mm::health::test::Mutations;
using mm::health::test::PlantedTree;

namespace {

bool printable(const std::string& text) {
  for (const unsigned char c : text)
    if ((c < 0x20 && c != '\n') || c == 0x7f) return false;
  return true;
}

// Reads and judges without NVML, whose tests are below.
NodeReport read(H100Node& node) {
  NodeOptions options = node.options();
  options.nvml_library = NodeOptions().nvml_library;
  return read_node(options);
}

const std::vector<std::string> kOddities = {"",
                                            "\n",
                                            "-1\n",
                                            "99999999999999999999999\n",
                                            "9223372036854775807\n",
                                            "nan\n",
                                            std::string("\0\x1b[31m\xff", 7),
                                            std::string(70'000, 'x'),
                                            "0x10 3: 4\n\n5 : 6\n"};

// Plants `content` in place of every file of that name; how many there were.
int replace_all(const H100Node& node, const std::string& name, const std::string& content) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(node.root()))
    if (entry.is_regular_file() && entry.path().filename() == name) found.push_back(entry.path());
  for (const auto& file : found) node.plant(file.lexically_relative(node.root()).string(), content);
  return static_cast<int>(found.size());
}

std::set<std::string> file_names(const H100Node& node) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(node.root()))
    if (entry.is_regular_file()) names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("hostile tree: every kernel file may hold anything; the node is read and judged") {
  const std::set<std::string> names = file_names(H100Node());
  CHECK(names.size() > 30);
  size_t next = 0;
  for (const std::string& name : names) {
    CAPTURE(name);
    // Two oddities a file, all of them over the files.
    for (int i = 0; i < 2; ++i) {
      const std::string& content = kOddities[next++ % kOddities.size()];
      CAPTURE(content.substr(0, 30));
      H100Node node;
      REQUIRE(replace_all(node, name, content) > 0);
      const NodeReport report = read(node);
      CHECK(report.findings.size() > 3);
      CHECK(printable(node_text(report)));
      CHECK_NOTHROW(node_json(report).dump());
    }
  }
}

TEST_CASE("hostile tree: directories, broken links and unreadable files where files should be") {
  H100Node node;
  node.remove("proc/meminfo");
  node.plant("proc/meminfo/inside", "x");
  node.remove("sys/class/infiniband/mlx5_2/ports/1/state");
  node.link("sys/class/infiniband/mlx5_2/ports/1/state", "no/such/file");
  node.remove("sys/class/net/eno1/statistics");
  node.plant("sys/class/net/eno1/statistics", "not a directory");
  node.link("sys/bus/pci/devices/0000:99:00.0", "sys/bus/pci/devices/0000:99:00.0");
  const NodeReport report = read(node);
  CHECK_FALSE(report.findings.empty());
  CHECK(printable(node_text(report)));
}

TEST_CASE("hostile tree: topology and watch read the same oddities") {
  for (const std::string& content : kOddities) {
    CAPTURE(content.substr(0, 30));
    H100Node node;
    for (const char* name : {"numa_node", "cpulist", "distance", "class", "meminfo", "state"})
      replace_all(node, name, content);
    const Topology topology = read_topology(SystemTree(node.root()));
    CHECK(printable(topology_text(topology)));
    CHECK_NOTHROW(topology_svg(topology));
    mm::ManualClock clock;
    NodeOptions options = node.options();
    Watcher watcher(options, clock);
    watcher.sample();
    for (const char* name : {"rx_errors", "link_downed", "ue_count", "port_xmit_data"})
      replace_all(node, name, content);
    clock.advance(1);
    CHECK(printable(watch_lines(watcher.sample())));
  }
}

TEST_CASE(
    "hostile NVML: absurd counts, names and links are cut down, escaped and survive the child") {
  H100Node node;
  node.gpu(-1, "count", "4000000000");
  node.gpu(0, "name", "\x1b[2Jevil\x07\x01");
  node.gpu(1, "serial", std::string(3000, 'A'));
  node.gpu(2, "bus_id", "????????????????????????????????????????????????????");
  node.gpu(3, "link.0.remote", "\x1b]0;title\x07");
  node.gpu(4, "process_memory", "0xffffffffffffffff");
  node.gpu(4, "process", "1");
  node.gpu(5, "recovery_action", "4294967295");
  node.gpu(6, "clock_reasons", "0xffffffffffffffff");
  node.gpu(7, "memory_used", "18446744073709551615");
  const NodeOptions options = node.options();
  const GpuReport gpus = read_gpus_guarded(MM_FAKE_NVML_LIBRARY, 20'000);
  REQUIRE(gpus.devices.size() == 64);
  const NodeReport report = read_node(options);
  CHECK_FALSE(report.healthy());
  CHECK(printable(node_text(report)));
  CHECK(printable(topology_text(read_topology(SystemTree(node.root()), gpus))));
}

TEST_CASE("hostile log: lines of any bytes are read or passed over") {
  const std::string good =
      "6,1,1000000,-;NVRM: Xid (PCI:0000:5b:00): 79, pid=1, GPU has fallen off the bus.\n"
      "[   12.3] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30\n"
      "4,2,99,-;oom-kill:constraint=CONSTRAINT_MEMCG,task=python\n";
  const XidTable xids = load_xid_table();
  Mutations mutations(good);
  const PlantedTree tree;
  for (int i = 0; i < 400; ++i) {
    tree.plant("log", mutations.next());
    for (const Finding& f : judge_kernel_log(read_kernel_log(tree.root() / "log"), xids, {}))
      CHECK(printable(finding_line(f)));
  }
}

TEST_CASE(
    "hostile tables: a broken Xid table, SKU file, baseline or topology ends with our error") {
  const PlantedTree tree;
  H100Node node;
  learn_baseline(read(node), tree.root() / "baseline");
  const std::string baseline = mm::read_json_file(tree.root() / "baseline").dump();
  const NodeReport report = read(node);
  int refused = 0, taken = 0;
  const auto must_hold = [&](const std::string& what, const std::string& text, auto&& body) {
    Mutations mutations(text);
    for (int i = 0; i < 150; ++i) {
      tree.plant(what, mutations.next());
      try {
        body((tree.root() / what).string());
        ++taken;
      } catch (const mm::Error& error) {
        CHECK(std::string(error.what()) != "");  // the program escapes it
        ++refused;
      }
    }
  };
  must_hold("xid.toml",
            "source = \"x\"\n[[xid]]\nids = \"13, 31-33\"\nwhat = \"a fault\"\nnvidia = "
            "\"RESTART_APP\"\nlevel = \"warn\"\ncode = \"F14\"\naction = \"restart\"\n",
            [](const std::string& file) { load_xid_table(file); });
  must_hold("sku.toml", "name = 'x'\n[gpu]\ncount = 4\nname = 'H'\n[speed]\ntolerance = 0.1\n",
            [](const std::string& file) { load_expectation(file); });
  must_hold("base.json", baseline,
            [&](const std::string& file) { compare_baseline(report, file, 0.05); });
  must_hold("topology.conf",
            "SwitchName=a Switches=b[1-2]\nSwitchName=b1 Nodes=n[1-4]\nSwitchName=b2 Nodes=n5\n",
            [](const std::string& file) { read_slurm_topology(file); });
  must_hold("topology.yaml",
            "- topology: t\n  cluster_default: true\n  tree:\n    switches:\n      - switch: a\n"
            "        children: b[1-2]\n      - switch: b1\n        nodes: n[1-4]\n",
            [](const std::string& file) { read_slurm_topology(file); });
  CHECK(refused > 50);
  CHECK(taken > 50);
}
