#include "lib/health/system_tree.h"

#include <doctest/doctest.h>

#include "tests/health/planted_node.h"

using namespace mm::health;
using mm::health::test::PlantedNode;

TEST_CASE("system tree: fields, numbers and absent files") {
  CHECK(field_of("a : 1\nb:2\nb: 3\n", "b") == "2");
  CHECK(field_of("abc: 1", "a") == std::nullopt);
  const SystemTree tree;
  CHECK_FALSE(tree.text("/proc/none"));
  CHECK_FALSE(tree.number("/proc/version"));
  CHECK(tree.names("/none").empty());
}

TEST_CASE("system tree: a planted root stands for the kernel's files") {
  const PlantedNode node;
  const SystemTree tree(node.root());
  CHECK_FALSE(tree.live());
  CHECK(SystemTree().live());
  CHECK(tree.text("/proc/sys/kernel/hostname") == "n07");
  CHECK(tree.number("/sys/class/net/eth0/speed") == 100000);
  CHECK(tree.number("/sys/class/net/eth1/speed") == -1);
  CHECK(tree.names("/sys/class/net") == std::vector<std::string>{"eth0", "eth1", "lo"});
  CHECK_FALSE(tree.text("/proc/uptime"));
}
