#include "lib/health/topology.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/health/nvml_devices.h"
#include "tests/health/h100_node.h"

using namespace mm::health;
using mm::health::test::H100Node;
using mm::health::test::PlantedTree;

TEST_CASE(
    "topo: an H100 node's ranks get their GPU, the card on its switch and a share of its cores") {
  const H100Node node;
  const Topology topology = read_topology(SystemTree(node.root()));
  REQUIRE(topology.gpus.size() == 8);
  REQUIRE(topology.nics.size() == 8);
  REQUIRE(topology.places.size() == 8);
  CHECK(topology.nics[3].label == "mlx5_3");
  for (size_t i = 0; i < 8; ++i) {
    CHECK(topology.places[i].gpu == "GPU" + std::to_string(i));
    CHECK(topology.places[i].nic_distance == Distance::kPix);
    CHECK(topology.places[i].numa == static_cast<int>(i / 4));
  }
  CHECK(topology.places[0].cpus == "0-11");
  CHECK(topology.places[7].cpus == "84-95");
  CHECK(topology.places[5].reason == "2 of 4 GPUs of NUMA node 1; " + topology.places[5].nic +
                                         " is the nearest free card (PIX)");
}

TEST_CASE("topo: distances follow the bridges between two devices") {
  const auto device = [](const char* bdf, std::vector<std::string> path, int numa) {
    return PciDevice{.bdf = bdf, .numa_node = numa, .path = std::move(path)};
  };
  const PciDevice a = device("a", {"pci0", "p", "s1", "a"}, 0);
  CHECK(distance(a, a) == Distance::kSelf);
  CHECK(distance(a, device("b", {"pci0", "p", "s1", "b"}, 0)) == Distance::kPix);
  CHECK(distance(a, device("c", {"pci0", "p", "s2", "t", "c"}, 0)) == Distance::kPxb);
  CHECK(distance(a, device("d", {"pci0", "q", "d"}, 0)) == Distance::kPhb);
  CHECK(distance(a, device("e", {"pci1", "r", "e"}, 0)) == Distance::kNode);
  CHECK(distance(a, device("f", {"pci2", "r", "f"}, 1)) == Distance::kSys);
}

TEST_CASE("topo: without GPUs one rank a NUMA node; text and drawing") {
  const PlantedTree tree;
  tree.plant("proc/sys/kernel/hostname", "c1\n");
  tree.plant("sys/devices/system/node/node0/cpulist", "0-3\n");
  tree.plant("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  1048576 kB\n");
  const Topology topology = read_topology(SystemTree(tree.root()));
  CHECK(topology_text(topology) ==
        "host c1\n"
        "NUMA node 0: processors 0-3, 1.0 GiB\n"
        "rank  GPU    card       NUMA  processors     reason\n"
        "0     -      -          0     0-3            no GPU: one rank a NUMA node, so that memory "
        "is "
        "near\n");
  const H100Node node;
  const std::string svg = topology_svg(read_topology(SystemTree(node.root())));
  CHECK(svg.starts_with("<svg xmlns="));
  CHECK(svg.find(">GPU7 rank 7</text>") != std::string::npos);
  CHECK(svg.find("http", 40) == std::string::npos);
  CHECK(topology_json(topology)["places"][0]["cpus"] == "0-3");
}

TEST_CASE("topo: lists of processors go there and back") {
  CHECK(parse_cpus("0-3,8,10-11") == std::vector<int>{0, 1, 2, 3, 8, 10, 11});
  CHECK(cpus_text({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(parse_cpus("").empty());
  CHECK(parse_cpus("3-1").empty());
  CHECK(parse_cpus("0-99999999").empty());
  CHECK(parse_cpus("a").empty());
}

TEST_CASE("topo: hosts follow the leaves of a tree, or the blocks") {
  const auto leaves = parse_slurm_topology(
      "# two spines\nSwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf2 Nodes=n[3-4]\n"
      "SwitchName=leaf3 Nodes=n[5-6] LinkSpeed=1\n"
      "SwitchName=b Switches=leaf2\nSwitchName=a Switches=leaf[1,3]\n",
      "topology.conf");
  REQUIRE(leaves.size() == 3);
  CHECK(leaves[1].above == std::vector<std::string>{"b"});
  CHECK(order_hosts({"n6", "n3", "x", "n1", "n2", "n5"}, leaves) ==
        std::vector<std::string>{"n1", "n2", "n6", "n5", "n3", "x"});
  const auto blocks = parse_slurm_topology("BlockName=b1 Nodes=n[1-4]\nBlockSizes=4\n", "t");
  CHECK(blocks[0].nodes.size() == 4);
  CHECK_THROWS_AS(parse_slurm_topology("SwitchName=s Nodes=n[1-\n", "t"), mm::DataError);
  CHECK_THROWS_AS(parse_slurm_topology("", "t"), mm::DataError);
  CHECK(parse_slurm_topology("SwitchName=a Switches=b Nodes=n1\nSwitchName=b Switches=a\n", "t")
            .size() == 1);
}

TEST_CASE("topo: NVLinks of an H100 node lead to four switches, which join any two GPUs by 18") {
  H100Node node;
  node.options();
  const Topology topology = read_topology(SystemTree(node.root()), read_gpus(MM_FAKE_NVML_LIBRARY));
  CHECK(topology.nvlink_problem == "");
  REQUIRE(topology.nvswitches.size() == 4);
  CHECK(topology.nvswitches[2].first == "NVSwitch2");
  CHECK(topology.nvswitches[2].second == H100Node::nvswitch_bdf(2));
  REQUIRE(topology.nvlinks.size() == 32);
  CHECK(topology.nvlinks[0].gpu == "GPU0");
  CHECK(topology.nvlinks[0].peer == "NVSwitch0");
  CHECK(topology.nvlinks[0].links == 5);
  CHECK(nvlinks_between(topology, "GPU0", "GPU7") == 18);
  CHECK(nvlinks_between(topology, "GPU0", "mlx5_0") == 0);
  const std::string text = topology_text(topology);
  CHECK(text.find("GPU3 NVLinks: NVSwitch0 x5, NVSwitch1 x4, NVSwitch2 x4, NVSwitch3 x5\n") !=
        std::string::npos);
  CHECK(topology_json(topology)["devices"][0]["distances"]["GPU5"] == "NV18");
}

TEST_CASE("topo: links that are down do not count; GPUs joined without a switch are neighbours") {
  H100Node node;
  for (int link = 0; link < 18; ++link)
    node.gpu(0, "link." + std::to_string(link) + ".active", link < 9 ? "0" : "1");
  for (const auto& [gpu, peer] : {std::pair{2, 3}, {3, 2}}) {
    for (int link = 0; link < 18; ++link) {
      const std::string at = "link." + std::to_string(link);
      node.gpu(gpu, at + ".remote",
               link < 4 ? "0000" + H100Node::gpu_bdf(peer) : "00000000:FE:00.0");
      node.gpu(gpu, at + ".remote_kind", link < 4 ? "0" : "255");
    }
  }
  node.options();
  const Topology topology = read_topology(SystemTree(node.root()), read_gpus(MM_FAKE_NVML_LIBRARY));
  CHECK(nvlinks_between(topology, "GPU0", "GPU1") == 9);
  CHECK(nvlinks_between(topology, "GPU2", "GPU3") == 4);
  CHECK(nvlinks_between(topology, "GPU2", "GPU4") == 0);
  // What is neither GPU nor switch here keeps its place on the bus as its name.
  CHECK(topology_text(topology).find("GPU2 NVLinks: 0000:FE:00.0 x14, GPU3 x4\n") !=
        std::string::npos);
}

TEST_CASE("topo: without NVML the links are said not to be known") {
  const H100Node node;
  const Topology topology = read_topology(SystemTree(node.root()));
  CHECK(topology_text(topology).find("NVLinks not known: NVML was not asked\n") !=
        std::string::npos);
  CHECK(topology_json(topology)["nvlinks"].is_null());
  CHECK(topology_json(topology)["devices"][0]["distances"]["GPU5"] == "SYS");
}

TEST_CASE("topo: the drawing has NVSwitches with a line a bundle, and the cluster's switches") {
  H100Node node;
  node.options();
  const auto leaves = parse_slurm_topology(
      "SwitchName=l1 Nodes=a[1-2]\nSwitchName=l2 Nodes=a[3-4]\nSwitchName=top Switches=l[1-2]\n",
      "t");
  const Topology topology = read_topology(SystemTree(node.root()), read_gpus(MM_FAKE_NVML_LIBRARY));
  const auto count = [](const std::string& text, const std::string& word) {
    size_t found = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++found;
    return found;
  };
  const std::string svg = topology_svg(topology, leaves, {"a1", "a3", "a4"});
  CHECK(count(svg, " NVLinks</title>") == 32);
  CHECK(svg.find("<title>GPU7 - NVSwitch3: 5 NVLinks</title>") != std::string::npos);
  CHECK(count(svg, ">NVSwitch") == 4);
  CHECK(count(svg, ">top</text>") == 1);
  CHECK(count(svg, "<title>top - l") == 2);
  CHECK(svg.find(">a2</text>") == std::string::npos);
  CHECK(count(svg, "<title>l2 - a") == 2);
  // Without links and leaves nothing of either.
  const std::string bare = topology_svg(read_topology(SystemTree(node.root())));
  CHECK(bare.find("<line") == std::string::npos);
}
