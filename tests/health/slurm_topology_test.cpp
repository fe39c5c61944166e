#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/health/topology.h"
#include "tests/health/planted_node.h"

// topology.yaml, and that both forms of one cluster are the same leaves.

using namespace mm::health;
using mm::health::test::PlantedTree;

namespace {

const char* kYaml = R"(# the cluster
---
- topology: flat
  cluster_default: false
  flat: true
- topology: fast
  cluster_default: true     # what jobs get
  tree:
    switches:
      - switch: spine
        children: leaf[1-2]
      - switch: leaf1
        nodes: n[1-2]
      - switch: "leaf2"
        nodes: 'n[3-4],x7'
- topology: blocks
  block:
    block_sizes:
      - 4
      - 16
    blocks:
      - block: b1
        nodes: n[1-4]
)";

std::string shown(const std::vector<LeafSwitch>& leaves) { return leaves_text(leaves, {}); }

std::string refused(const std::string& text) {
  try {
    parse_slurm_topology_yaml(text, "t.yaml");
  } catch (const mm::DataError& error) {
    return error.what();
  }
  return "taken";
}

}  // namespace

TEST_CASE("topology.yaml: the cluster's default topology, as the same tree in topology.conf") {
  const auto leaves = parse_slurm_topology_yaml(kYaml, "t.yaml");
  CHECK(shown(leaves) == "switch leaf1 below spine: n1 n2\nswitch leaf2 below spine: n3 n4 x7\n");
  const auto conf = parse_slurm_topology(
      "SwitchName=spine Switches=leaf[1-2]\nSwitchName=leaf1 Nodes=n[1-2]\n"
      "SwitchName=leaf2 Nodes=n[3-4],x7\n",
      "t.conf");
  CHECK(shown(conf) == shown(leaves));
  CHECK(leaves_text(leaves, {"n4"}) == "switch leaf2 below spine: n4\n");
}

TEST_CASE(
    "topology.yaml: without a default the first with nodes; blocks, rings and maps in braces") {
  CHECK(shown(parse_slurm_topology_yaml(
            "- topology: a\n  flat: true\n- topology: b\n  block:\n    block_sizes:\n      - 2\n"
            "    blocks:\n      - block: b1\n        nodes: n[1-2]\n      - block: b2\n"
            "        nodes: n3\n",
            "t")) == "switch b1: n1 n2\nswitch b2: n3\n");
  CHECK(shown(parse_slurm_topology_yaml(
            "- topology: r\n  ring:\n    rings:\n      - {ring: r1, nodes: \"n[1-2,4]\"}\n"
            "      - {ring: r2, nodes: n7}\n",
            "t")) == "switch r1: n1 n2 n4\nswitch r2: n7\n");
  CHECK(shown(parse_slurm_topology("RingName=r1 Nodes=n[1-3]\n", "t")) == "switch r1: n1 n2 n3\n");
  CHECK(shown(parse_slurm_topology_yaml("- topology: w\r\n  tree:\r\n    switches:\r\n"
                                        "      - switch: s\r\n        nodes: n1\r\n",
                                        "t")) == "switch s: n1\n");
}

TEST_CASE("topology.yaml: what is none is refused with file and line") {
  CHECK(refused("") == "t.yaml: no topology with a switch, block or ring that has nodes");
  CHECK(refused("- topology: f\n  flat: true\n") ==
        "t.yaml: no topology with a switch, block or ring that has nodes");
  CHECK(refused("switch: s\n") == "t.yaml:1: switch before the first topology");
  CHECK(refused("- topology: t\n  nodes: n1\n") ==
        "t.yaml:2: nodes without a switch, block or ring");
  CHECK(refused("- topology: t\n  tree\n") == "t.yaml:2: \"tree\": expected key: value");
  CHECK(refused("- topology: t\n  tree:\n    switches:\n    - switch: s\n      nodes: n[1-\n")
            .starts_with("t.yaml:5: "));
  CHECK(refused(std::string(100'000, '[')).find("expected key: value") != std::string::npos);
  CHECK(refused("\xff\xfe: \x01\n").starts_with("t.yaml:1: "));
  // Switches over one another in a circle end, as in the other form.
  CHECK(shown(parse_slurm_topology_yaml("- topology: t\n  tree:\n    switches:\n    - switch: a\n  "
                                        "    children: b\n      nodes: n1\n"
                                        "    - switch: b\n      children: a\n",
                                        "t")) == "switch a below b, a: n1\n");
}

TEST_CASE("slurm topology: the file's name says its form") {
  const PlantedTree tree;
  tree.plant("topology.yaml", kYaml);
  tree.plant("topology.conf", "SwitchName=s Nodes=n1\n");
  CHECK(read_slurm_topology(tree.root() / "topology.yaml").size() == 2);
  CHECK(read_slurm_topology(tree.root() / "topology.conf").size() == 1);
  CHECK_THROWS_AS(read_slurm_topology(tree.root() / "none.conf"), mm::IoError);
}
