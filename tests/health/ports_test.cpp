#include <doctest/doctest.h>
#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/health/ib_ports.h"
#include "lib/health/net_ports.h"
#include "lib/health/pci_devices.h"
#include "tests/health/h100_node.h"

using namespace mm::health;
using mm::health::test::H100Node;
using mm::health::test::PlantedTree;

namespace {

std::string codes(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings) text += f.code.empty() ? "" : f.code + " " + f.where + "\n";
  return text;
}

NetworkPort port(const char* name, const char* state, int64_t speed = 100'000) {
  return {.name = name, .state = state, .speed_mbit_s = speed, .mtu = 9000};
}

PciDevice card(int64_t width, const char* speed) {
  return {.bdf = "0000:01:00.0",
          .kind = PciDevice::Kind::kNetwork,
          .speed = speed,
          .max_speed = "32.0 GT/s PCIe",
          .width = width,
          .max_width = 16};
}

}  // namespace

TEST_CASE("network: required interfaces must be there, up, fast and take large packets") {
  Expectation expected;
  expected.ethernet.required = {"eth0"};
  expected.ethernet.speed_mbit_s = 100'000;
  expected.ethernet.mtu_min = 9000;
  CHECK(codes(judge_net_ports({port("eth0", "up")}, expected)) == "");
  CHECK(codes(judge_net_ports({port("eth1", "up")}, expected)) == "F51 eth0\n");
  CHECK(codes(judge_net_ports({port("eth0", "down"), port("eth1", "up")}, expected)) ==
        "F09 eth0\n");
  CHECK(codes(judge_net_ports({port("eth0", "up", 10'000)}, expected)) == "F11 eth0\n");
  NetworkPort small = port("eth0", "up");
  small.mtu = 1500;
  CHECK(codes(judge_net_ports({small}, expected)) == "F11 eth0\n");
}

TEST_CASE("network: link losses are F10, errors count by their share of packets") {
  NetworkPort flapping = port("eth0", "up");
  flapping.carrier_downs = 6;
  CHECK(codes(judge_net_ports({flapping}, {})) == "F10 eth0\n");
  NetworkPort noisy = port("eth0", "up");
  noisy.rx_packets = 1'000'000;
  noisy.rx_errors = 101;
  CHECK(codes(judge_net_ports({noisy}, {})) == "F49 eth0\n");
  noisy.rx_packets = 10'000'000;
  CHECK(codes(judge_net_ports({noisy}, {})) == "");
  CHECK(judge_net_ports({}, {}).front().level == Level::kNotChecked);
}

TEST_CASE("network: an interface without a device is a container's; counters are read") {
  const PlantedTree tree;
  tree.plant("sys/devices/virtual/net/docker0/operstate", "down\n");
  tree.link("sys/class/net/docker0", "sys/devices/virtual/net/docker0");
  tree.plant("sys/devices/pci0000:00/0000:00:05.0/net/eth0/operstate", "up\n");
  tree.plant("sys/devices/pci0000:00/0000:00:05.0/net/eth0/statistics/tx_bytes", "77\n");
  tree.link("sys/class/net/eth0", "sys/devices/pci0000:00/0000:00:05.0/net/eth0");
  const auto ports = read_net_ports(SystemTree(tree.root()));
  REQUIRE(ports.size() == 2);
  CHECK(ports[0].is_virtual);
  CHECK_FALSE(ports[1].is_virtual);
  CHECK(ports[1].tx_bytes == 77);
  CHECK_FALSE(ports[1].speed_mbit_s);
}

TEST_CASE("InfiniBand: counters of both folders are read, the cache time is none") {
  const H100Node node;
  const auto ports = read_ib_ports(SystemTree(node.root()));
  REQUIRE(ports.size() == 8);
  CHECK(ports[2].label() == "mlx5_2 port 1");
  CHECK(ports[2].active());
  CHECK(ports[2].rate_gbit_s() == 400);
  CHECK(ports[2].counters.contains("out_of_sequence"));
  CHECK_FALSE(ports[2].counters.contains("lifespan"));
  CHECK(ports[2].counter("no_such") == 0);
  const auto guarded = read_ib_ports_guarded(SystemTree(node.root()), 10'000);
  CHECK(ib_ports_json(guarded) == ib_ports_json(ports));
}

TEST_CASE("InfiniBand: errors, ignored devices, missing ports and none at all") {
  const H100Node node;
  node.plant(node.ib(1, "counters/symbol_error"), "101\n");
  node.plant(node.ib(4, "state"), "2: INIT\n");
  const auto ports = read_ib_ports(SystemTree(node.root()));
  Expectation expected;
  CHECK(codes(judge_ib_ports(ports, expected)) == "F49 mlx5_1 port 1\nF09 mlx5_4 port 1\n");
  expected.infiniband.ignore = {"mlx5_4", "mlx5_1"};
  CHECK(codes(judge_ib_ports(ports, expected)) == "");
  expected.infiniband.ports = 8;
  CHECK(codes(judge_ib_ports(ports, expected)) == "F51 InfiniBand\n");
  CHECK(judge_ib_ports({}, {}).front().level == Level::kNotChecked);
}

TEST_CASE("PCIe: width, speed and fatal errors of cards; a GPU may idle slowly, not narrowly") {
  CHECK(codes(judge_pci({card(16, "32.0 GT/s PCIe")}, {})) == "");
  CHECK(codes(judge_pci({card(8, "32.0 GT/s PCIe")}, {})) == "F11 network card 0000:01:00.0\n");
  CHECK(codes(judge_pci({card(16, "16.0 GT/s PCIe")}, {})) == "F11 network card 0000:01:00.0\n");
  PciDevice gpu = card(16, "2.5 GT/s PCIe");
  gpu.kind = PciDevice::Kind::kGpu;
  CHECK(codes(judge_pci({gpu}, {})) == "");
  gpu.width = 4;
  CHECK(codes(judge_pci({gpu}, {})) == "F11 GPU 0000:01:00.0\n");
  PciDevice sick = card(16, "32.0 GT/s PCIe");
  sick.fatal = 1;
  CHECK(codes(judge_pci({sick}, {})) == "F49 network card 0000:01:00.0\n");
  Expectation lenient;
  lenient.pcie.full_width = false;
  CHECK(codes(judge_pci({card(8, "8.0 GT/s PCIe")}, lenient)) == "");
  CHECK(judge_pci({card(0, "")}, {}).front().level == Level::kNotChecked);
}

TEST_CASE("PCIe: paths lead through the bridges, error totals are found in the kernel's lists") {
  const H100Node node;
  const std::string file = "sys/bus/pci/devices/" + H100Node::nic_bdf(0) + "/aer_dev_fatal";
  node.plant(file, "Undefined 0\nDLP 2\nTOTAL_ERR_FATAL 2\n");
  for (const PciDevice& device : read_pci(SystemTree(node.root()))) {
    CHECK(device.path.size() == 4);
    CHECK(device.path.back() == device.bdf);
    CHECK(device.fatal == (device.bdf == H100Node::nic_bdf(0) ? 2 : 0));
    CHECK_FALSE(device.nonfatal);
  }
}
