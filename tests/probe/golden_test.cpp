#include "tests/probe/golden.h"

#include <fmt/format.h>

#include <atomic>
#include <set>
#include <sstream>
#include <thread>

#include "lib/base/json.h"
#include "tests/health/h100_node.h"
#include "tests/probe/run_mmprobe.h"

// Text and JSON of every verb, whole, as a script that reads them sees them.

using mm::Json;
using mm::health::test::H100Node;
using mm::health::test::PlantedTree;
using mm::probe::test::check_golden;
using mm::probe::test::mmprobe;
using mm::probe::test::Run;
using mm::probe::test::steady;
using mm::probe::test::without_figures;

namespace {

// Variables in front of the program that make it see the planted node.
std::string seeing(const H100Node& node) {
  return "MMPROBE_NVML=" MM_FAKE_NVML_LIBRARY " MMPROBE_NCCL=libno-such-nccl.so MM_FAKE_NVML=" +
         (node.root() / "nvml.scenario").string();
}
std::string tree_of(const H100Node& node) {
  return " --sysfs-root " + node.root().string() + " --kmsg " + (node.root() / "kmsg").string();
}

void both_forms(const std::string& name, const std::string& arguments, const std::string& before,
                const std::string& root, int exit_code) {
  const Run text = mmprobe(arguments, before), json = mmprobe(arguments + " --json", before);
  CHECK(text.exit_code == exit_code);
  CHECK(json.exit_code == exit_code);
  check_golden(name + ".txt", steady(text.output, root));
  CHECK(Json::parse(json.output)["schema"].is_number());
  check_golden(name + ".json", steady(json.output, root));
}

const char* kPairs = R"({"members": ["n1", "n2", "n3", "n4"], "rails": ["ib0", "ib1"], "pairs": [
  {"a": 0, "b": 1, "rail": 0, "gb_s": 12.0, "latency_us": 9},
  {"a": 2, "b": 3, "rail": 0, "gb_s": 5.0, "latency_us": 9},
  {"a": 0, "b": 2, "rail": 0, "gb_s": 5.1, "latency_us": 9},
  {"a": 1, "b": 3, "rail": 0, "gb_s": 11.9, "latency_us": 9},
  {"a": 0, "b": 3, "rail": 0, "gb_s": 12.0, "latency_us": 9},
  {"a": 1, "b": 2, "rail": 0, "gb_s": 5.2, "latency_us": 9},
  {"a": 0, "b": 1, "rail": 1, "gb_s": 12.0, "latency_us": 9},
  {"a": 2, "b": 3, "rail": 1, "error": "no answer in time", "again": [
     {"gb_s": 11.0, "latency_us": 9, "stall_ms": 0, "retransmits": 0}, {"error": "no answer in time"}]},
  {"a": 0, "b": 3, "rail": 1, "gb_s": 12.1, "latency_us": 9},
  {"a": 1, "b": 3, "rail": 1, "gb_s": 12.1, "latency_us": 9},
  {"a": 0, "b": 2, "rail": 1, "gb_s": 11.9, "latency_us": 9},
  {"a": 1, "b": 2, "rail": 1, "gb_s": 11.8, "latency_us": 9, "losses": [1, 0]}]})";

}  // namespace

TEST_CASE("golden: node, on an H100 node that is healthy and on one with faults") {
  H100Node good;
  good.options();
  both_forms("node-good", "node --sku h100-8" + tree_of(good), seeing(good), good.root().string(),
             0);
  H100Node bad;
  bad.plant(bad.ib(3, "state"), "1: DOWN\n");
  bad.gpu(2, "clock_reasons", "0x40");
  bad.gpu(5, "rows_pending", "1");
  bad.kernel_line("NVRM: Xid (PCI:0000:63:00): 79, pid=1, GPU has fallen off the bus.");
  bad.options();
  both_forms("node-bad", "node --sku h100-8" + tree_of(bad), seeing(bad), bad.root().string(), 69);
}

TEST_CASE("golden: node --full, with GPUs that a stand-in measures") {
  H100Node node;
  node.options();
  node.plant("devices.json",
             R"({"checked": true, "problem": "", "devices": [
    {"name": "H100", "hash": 5, "steady": true, "gemm_tflop_s": 700.0, "memory_copy_gb_s": 2700.0,
     "to_device_gb_s": 52.0, "to_host_gb_s": 51.0, "problem": ""},
    {"name": "H100", "hash": 6, "steady": true, "gemm_tflop_s": 500.0, "memory_copy_gb_s": 2710.0,
     "to_device_gb_s": 25.0, "to_host_gb_s": 51.5, "problem": ""},
    {"name": "H100", "hash": 5, "steady": true, "gemm_tflop_s": 690.0, "memory_copy_gb_s": 2690.0,
     "to_device_gb_s": 51.9, "to_host_gb_s": 51.2, "problem": ""}]})");
  const std::string before = seeing(node) + " MMPROBE_ENGINE=" MM_FAKE_ENGINE " MM_FAKE_DEVICES=" +
                             (node.root() / "devices.json").string();
  const std::string arguments = "node --full --full-seconds 0.02 --full-memory 1M --full-disk 4M" +
                                tree_of(node) + " --path " + node.root().string();
  // Only what does not hang on this machine: its cores' figures and warnings differ.
  const auto lines = [&](const std::string& text) {
    std::istringstream in(without_figures(steady(text, node.root().string())));
    std::string kept;
    for (std::string line; std::getline(in, line);)
      if (line.find("far slower than the other cores") == std::string::npos) kept += line + "\n";
    return kept;
  };
  const Run text = mmprobe(arguments, before);
  CHECK(text.exit_code == 69);
  check_golden("node-full.txt", lines(text.output));
  Json json = Json::parse(mmprobe(arguments + " --json", before).output);
  Json full = json["full"];
  for (const char* measured : {"core_gflop_s", "gemm_gflop_s", "memory_copy_gb_s",
                               "disk_write_mb_s", "disk_read_mb_s", "seconds"})
    full[measured] = full[measured].is_array() ? Json("numbers") : Json("number");
  check_golden("node-full.json", full.dump(2) + "\n");
}

TEST_CASE("golden: nccl over a stand-in of NCCL, figures aside") {
  const std::string fake =
      "MMPROBE_NCCL=" MM_FAKE_NCCL_LIBRARY " MMPROBE_CUDART=" MM_FAKE_NCCL_LIBRARY
      " SLURMD_NODENAME=n7 RANK=0 "
      "WORLD_SIZE=1";
  const std::string arguments = "nccl broadcast --min-bytes 1K --max-bytes 4K --expect 0.000001";
  const Run text = mmprobe(arguments, fake), json = mmprobe(arguments + " --json", fake);
  CHECK(text.exit_code == 0);
  // The columns of figures, and a fit that there need not be, are left out.
  std::istringstream in(text.output);
  std::string kept;
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with("# Fit"))
      kept += (line.starts_with("  ") ? line.substr(0, 52) : without_figures(line)) + "\n";
  check_golden("nccl.txt", kept);
  Json parsed = Json::parse(json.output);
  for (Json& row : parsed["groups"][0]["rows"])
    for (const char* way : {"out_of_place", "in_place"})
      for (const char* figure : {"time_us", "algbw", "busbw"}) row[way][figure] = "number";
  parsed["groups"][0]["fit"] = "numbers or null";
  parsed["average_busbw"] = "number";
  parsed["findings"][0]["what"] = "bandwidth and expectation";
  check_golden("nccl.json", parsed.dump(2) + "\n");
}

TEST_CASE("golden: pairs, recorded, as text, JSON and heat map") {
  const PlantedTree tree;
  tree.plant("pairs.json", kPairs);
  const std::string at = tree.root().string();
  both_forms("pairs", "pairs --matrix --replay " + at + "/pairs.json", "", at, 69);
  mmprobe("pairs --matrix --html " + at + "/p.html --replay " + at + "/pairs.json");
  check_golden("pairs.html", mm::read_file(tree.root() / "p.html"));
}

TEST_CASE("golden: fleet, recorded, with nodes and links") {
  const PlantedTree tree;
  for (int i = 1; i <= 4; ++i)
    tree.plant(
        fmt::format("r/n{}.json", i),
        fmt::format(R"({{"schema": 1, "host": "n{}", "job": "7", "answered": true, "faults": [],
                 "not_checked": 2, "facts": {{"gpu.count": {}, "speed.gemm_gflop_s": {}.5}}}})",
                    i, i == 2 ? 7 : 8, i == 4 ? 880 : 1000 + i));
  tree.plant("r/links/pairs.json", kPairs);
  const std::string at = tree.root().string();
  both_forms("fleet", "fleet --replay " + at + "/r", "", at, 69);
}

TEST_CASE("golden: topo of an H100 node behind Slurm's switches, as text, JSON and drawing") {
  H100Node node;
  node.options();
  node.plant("topology.yaml",
             "- topology: fast\n  cluster_default: true\n  tree:\n    switches:\n"
             "      - switch: spine\n        children: leaf[1-2]\n"
             "      - switch: leaf1\n        nodes: gpu[000-001]\n"
             "      - switch: leaf2\n        nodes: gpu[002-003]\n");
  const std::string at = node.root().string();
  const std::string arguments =
      "topo --sysfs-root " + at + " --slurm-topology " + at + "/topology.yaml --nodes gpu[000-002]";
  both_forms("topo", arguments, seeing(node), at, 0);
  mmprobe(arguments + " --svg " + at + "/t.svg", seeing(node));
  check_golden("topo.svg", mm::read_file(node.root() / "t.svg"));
}

TEST_CASE("golden: watch, while one counter rises, as lines, JSON lines and Prometheus text") {
  H100Node node;
  node.options();
  node.plant("sys/class/net/eno1/statistics/rx_bytes", "0\n");
  std::atomic<bool> stop = false;
  std::thread traffic([&] {
    for (uint64_t bytes = 1; !stop; ++bytes) {
      // Replaced as a whole, so that no reader sees half of it.
      mm::write_file_atomic(node.root() / "sys/class/net/eno1/statistics/rx_bytes",
                            fmt::format("{}\n", bytes));
    }
  });
  const std::string arguments = "watch --interval 0.05 --samples 4" + tree_of(node);
  // Lines that differ only in numbers, once each; a sample in which nothing rose has none.
  const auto kinds = [](const std::string& text) {
    std::set<std::string> seen;
    const std::regex number(R"(\d[-+.\de]*(?=[^\w]))");
    std::istringstream in(std::regex_replace(steady(text), number, "#"));
    std::string all;
    for (std::string line; std::getline(in, line);) {
      const bool told = line.starts_with("# TYPE") || line.find("rx_bytes") != std::string::npos;
      if (told && seen.insert(line).second) all += line + "\n";
    }
    return all;
  };
  check_golden("watch.txt", kinds(mmprobe(arguments, seeing(node)).output));
  check_golden("watch.jsonl", kinds(mmprobe(arguments + " --format jsonl", seeing(node)).output));
  check_golden("watch.prom",
               kinds(mmprobe(arguments + " --format prometheus", seeing(node)).output));
  stop = true;
  traffic.join();
}
