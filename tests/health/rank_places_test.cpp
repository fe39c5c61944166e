#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

#include "lib/health/topology.h"
#include "tests/health/h100_node.h"

// Where ranks are put on nodes that are not as regular as a DGX.

using namespace mm::health;
using mm::health::test::H100Node;
using mm::health::test::PlantedTree;

namespace {

// Takes devices off the bus of an H100 node.
Topology without(const std::vector<int>& gpus, const std::vector<int>& nics) {
  const H100Node node;
  for (const int gpu : gpus) node.remove("sys/bus/pci/devices/" + H100Node::gpu_bdf(gpu));
  for (const int nic : nics) node.remove("sys/bus/pci/devices/" + H100Node::nic_bdf(nic));
  return read_topology(SystemTree(node.root()));
}

// Every processor once, each rank some.
void check_shares(const Topology& topology) {
  std::set<int> seen;
  for (const RankPlace& place : topology.places) {
    const std::vector<int> cpus = parse_cpus(place.cpus);
    CHECK_FALSE(cpus.empty());
    for (const int cpu : cpus) CHECK(seen.insert(cpu).second);
  }
}

}  // namespace

TEST_CASE("rank places: at any number of GPUs each rank has its own, and no core is two ranks'") {
  for (int gone = 0; gone < 8; ++gone) {
    CAPTURE(gone);
    std::vector<int> list;
    for (int i = 0; i < gone; ++i) list.push_back(i);
    const Topology topology = without(list, {});
    REQUIRE(topology.places.size() == static_cast<size_t>(8 - gone));
    std::set<std::string> gpus, nics;
    for (const RankPlace& place : topology.places) {
      CHECK(gpus.insert(place.gpu).second);
      CHECK(nics.insert(place.nic).second);
      CHECK(place.nic_distance == Distance::kPix);
      CHECK_FALSE(place.reason.empty());
    }
    check_shares(topology);
  }
}

TEST_CASE("rank places: with fewer cards than GPUs a card is shared, the nearest one") {
  const Topology topology = without({}, {1, 3, 5, 7});
  REQUIRE(topology.nics.size() == 4);
  std::map<std::string, int> users;
  for (const RankPlace& place : topology.places) ++users[place.nic];
  CHECK(users.size() == 4);
  const Topology one = without({}, {1, 2, 3, 4, 5, 6, 7});
  for (const RankPlace& place : one.places) CHECK(place.nic == one.nics[0].label);
  CHECK(one.places[0].nic_distance == Distance::kPix);
  CHECK(one.places[7].nic_distance == Distance::kSys);
}

TEST_CASE("rank places: without cards there is none to name") {
  const Topology topology = without({}, {0, 1, 2, 3, 4, 5, 6, 7});
  for (const RankPlace& place : topology.places) {
    CHECK(place.nic.empty());
    CHECK(place.reason.find("card") == std::string::npos);
  }
  CHECK(topology_text(topology).find("GPU7") != std::string::npos);
}

TEST_CASE("rank places: GPUs whose NUMA node nobody tells run, without cores of their own") {
  const H100Node node;
  for (int i = 0; i < 8; ++i)
    node.plant("sys/bus/pci/devices/" + H100Node::gpu_bdf(i) + "/numa_node", "-1\n");
  const Topology topology = read_topology(SystemTree(node.root()));
  REQUIRE(topology.places.size() == 8);
  for (const RankPlace& place : topology.places) {
    CHECK(place.numa == -1);
    CHECK(place.cpus == "");
  }
}

TEST_CASE("rank places: a NUMA node with fewer processors than GPUs gives some ranks none") {
  const H100Node node;
  node.plant("sys/devices/system/node/node0/cpulist", "0-2\n");
  const Topology topology = read_topology(SystemTree(node.root()));
  std::string shares;
  for (int i = 0; i < 4; ++i) shares += topology.places[static_cast<size_t>(i)].cpus + ";";
  // Three processors among four ranks: nobody has another's.
  std::set<int> seen;
  for (const RankPlace& place : topology.places)
    for (const int cpu : parse_cpus(place.cpus)) CHECK(seen.insert(cpu).second);
  CHECK(shares != ";;;;");
}

TEST_CASE("rank places: NUMA nodes of memory alone get no rank where there is no GPU") {
  const PlantedTree tree;
  const std::string at = "sys/devices/system/node/";
  tree.plant(at + "node0/cpulist", "0-7\n");
  tree.plant(at + "node0/meminfo", "Node 0 MemTotal: 1024 kB\n");
  tree.plant(at + "node1/cpulist", "\n");
  tree.plant(at + "node1/meminfo", "Node 1 MemTotal: 4096 kB\n");
  const Topology topology = read_topology(SystemTree(tree.root()));
  REQUIRE(topology.places.size() == 1);
  CHECK(topology.places[0].cpus == "0-7");
  CHECK(read_topology(SystemTree(PlantedTree().root())).places.empty());
}

TEST_CASE("host order: every host once, whatever the switches name") {
  const auto leaves = parse_slurm_topology(
      "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[3-6]\nSwitchName=c Nodes=x\n", "t");
  // A host below two leaves goes with the first; unknown ones come last, as given.
  CHECK(order_hosts({"n6", "n5", "n4", "n3", "u2", "n2", "u1"}, leaves) ==
        std::vector<std::string>{"n4", "n3", "n2", "n6", "n5", "u2", "u1"});
  CHECK(order_hosts({}, leaves).empty());
  CHECK(order_hosts({"q"}, {}) == std::vector<std::string>{"q"});
}
