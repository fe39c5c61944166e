#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "tests/health/planted_node.h"
#include "tests/probe/run_mmprobe.h"

// The verbs' streams and exit codes; their figures are planted.

using mm::Json;
using mm::health::test::PlantedTree;
using mm::probe::test::mmprobe;
using mm::probe::test::Run;

namespace {

const char* kPairs = R"({"members": ["n1", "n2", "n3", "n4"], "rails": ["ib0"], "pairs": [
  {"a": 0, "b": 1, "gb_s": 12.0, "latency_us": 9},
  {"a": 2, "b": 3, "gb_s": 5.0, "latency_us": 9},
  {"a": 0, "b": 3, "gb_s": 11.9, "latency_us": 9},
  {"a": 1, "b": 2, "gb_s": 5.1, "latency_us": 9},
  {"a": 0, "b": 2, "gb_s": 5.1, "latency_us": 9},
  {"a": 1, "b": 3, "gb_s": 12.1, "latency_us": 9}]})";

}  // namespace

TEST_CASE("mmprobe pairs: recorded measurements name the slow node; text, JSON and heat map") {
  const PlantedTree tree;
  tree.plant("pairs.json", kPairs);
  const std::string at = tree.root().string();
  const Run text = mmprobe("pairs --replay " + at + "/pairs.json --html " + at + "/pairs.html");
  CHECK(text.exit_code == 69);
  CHECK(text.output ==
        "4 members, 1 rails, 4 pairs in 2 slots\n"
        "rail ib0\n"
        "member           member                 GB/s latency (us)\n"
        "n1               n2                   12.000          9.0\n"
        "n3               n4                    5.000          9.0\n"
        "n2               n3                    5.100          9.0\n"
        "n1               n4                   11.900          9.0\n"
        "BAD         F06 n3: slow with every partner; 5.000 GB/s, 9.0 us; others 12.000 GB/s, 9.0 "
        "us; "
        "since unknown; action: exclude the node; check its links\n");
  const std::string page = mm::read_file(tree.root() / "pairs.html");
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.find("<h2>ib0</h2>") != std::string::npos);
  const Run json = mmprobe("pairs --matrix --json --replay " + at + "/pairs.json");
  const Json parsed = Json::parse(json.output);
  CHECK(parsed["schema"] == 1);
  CHECK(parsed["pairs"].size() == 6);
  CHECK(parsed["slots"] == 3);
  CHECK(parsed["findings"][0]["where"] == "n3");
  CHECK(mmprobe("pairs --replay " + at + "/none.json").exit_code == 2);
  tree.plant("broken.json", "[]");
  CHECK(mmprobe("pairs --replay " + at + "/broken.json").exit_code == 65);
}

TEST_CASE("mmprobe topo: map, drawing and the order of nodes") {
  const PlantedTree tree;
  tree.plant("proc/sys/kernel/hostname", "c1\n");
  tree.plant("sys/devices/system/node/node0/cpulist", "0-3\n");
  tree.plant("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  1048576 kB\n");
  tree.plant("topology.conf", "SwitchName=s1 Nodes=n[1,3]\nSwitchName=s2 Nodes=n[2,4]\n");
  const std::string at = tree.root().string();
  const std::string arguments =
      "topo --sysfs-root " + at + " --slurm-topology " + at + "/topology.conf";
  const Run text = mmprobe(arguments + " --nodes n[1-4] --svg " + at + "/t.svg");
  CHECK(text.exit_code == 0);
  CHECK(text.output ==
        "host c1\n"
        "NUMA node 0: processors 0-3, 1.0 GiB\n"
        "rank  GPU    card       NUMA  processors     reason\n"
        "0     -      -          0     0-3            no GPU: one rank a NUMA node, so that memory "
        "is "
        "near\n"
        "switch s1: n1 n3\nswitch s2: n2 n4\n"
        "nodes in the order of their switches, so that neighbours in a ring share one:\n"
        "n1\nn3\nn2\nn4\n");
  CHECK(mm::read_file(tree.root() / "t.svg").starts_with("<svg"));
  const Json json = Json::parse(mmprobe(arguments + " --nodes n2,n1 --json").output);
  CHECK(json["host_order"] == Json::array({"n1", "n2"}));
  CHECK(json["places"][0]["numa"] == 0);
}

TEST_CASE("mmprobe watch: ends after its samples; three forms") {
  const PlantedTree tree;
  tree.plant("sys/class/net/eth0/operstate", "up\n");
  const std::string at = " --sysfs-root " + tree.root().string() + " --interval 0.01 --samples 2";
  const Run lines = mmprobe("watch" + at);
  CHECK(lines.exit_code == 0);
  CHECK(lines.output == "");
  const Run jsonl = mmprobe("watch --format jsonl" + at);
  CHECK(std::count(jsonl.output.begin(), jsonl.output.end(), '\n') == 2);
  CHECK(Json::parse(jsonl.output.substr(0, jsonl.output.find('\n')))["counters"].empty());
  const auto file = tree.root() / "mmprobe.prom";
  CHECK(mmprobe("watch --format prometheus --out " + file.string() + at).exit_code == 0);
  CHECK(mm::read_file(file) ==
        "# TYPE mmprobe_counter_total counter\n# TYPE mmprobe_events_total counter\n");
}

TEST_CASE("mmprobe fleet: alone it is a fleet of one; every verb has help") {
  const PlantedTree tree;
  const Run run = mmprobe("fleet --dir " + (tree.root() / "results").string());
  CHECK(run.output.find(" 1 ") != std::string::npos);
  CHECK(std::filesystem::exists(tree.root() / "results"));
  for (const char* verb : {"node", "nccl", "pairs", "fleet", "topo", "watch"}) {
    CAPTURE(verb);
    const Run help = mmprobe(std::string(verb) + " --help");
    CHECK(help.exit_code == 0);
    CHECK(help.output.find("Examples:") != std::string::npos);
    CHECK(mmprobe(std::string(verb) + " --no-such-flag").exit_code == 2);
  }
}

TEST_CASE("mmprobe: what was typed wrongly is named in one line, with what was likely meant") {
  const auto said = [](const char* arguments) {
    const Run run = mmprobe(arguments);
    CHECK(run.exit_code == 2);
    CHECK(std::count(run.output.begin(), run.output.end(), '\n') == 1);
    return run.output;
  };
  CHECK(said("nod") ==
        "mmprobe: error: \"nod\" is no verb; did you mean \"node\"?; see `mmprobe --help`\n");
  CHECK(said("node --skuu x") ==
        "mmprobe: error: node has no option --skuu; did you mean --sku?; see `mmprobe node "
        "--help`\n");
  CHECK(said("").starts_with("mmprobe: error: A subcommand is required"));
  CHECK(said("topo --sysfs-root /no/such").find("/no/such") != std::string::npos);
  // A size below nothing is not an enormous one.
  for (const char* sized : {"pairs --bytes -5", "nccl --max-bytes -1", "fleet --pair-bytes 0",
                            "node --full-memory -5", "node --full-disk 99999T"})
    CHECK(said(sized).starts_with("mmprobe: error: --"));
}
