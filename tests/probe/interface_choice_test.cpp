#include "lib/probe/interface_choice.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/base/error.h"

using namespace mm::probe;

namespace {

const std::vector<Interface> kAll = {{"lo", "127.0.0.1"},
                                     {"docker0", "172.17.0.1"},
                                     {"veth1a2b", "169.254.1.1"},
                                     {"eno1", "10.0.0.7"},
                                     {"ib0", "10.1.0.7"}};

std::string chosen(const std::string& setting, int nodes = 2) {
  return choose_interface(kAll, setting, nodes).chosen.name;
}

std::string error_of(const std::string& setting, int nodes = 2) {
  try {
    chosen(setting, nodes);
  } catch (const mm::UsageError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("C57: unset takes ib0 and warns of veth; containers and loopback come last") {
  CHECK(chosen("") == "ib0");
  const auto warnings = choose_interface(kAll, "", 2).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].starts_with("veth1a2b "));
  CHECK(choose_interface({kAll[0], kAll[1], kAll[3]}, "", 2).chosen.name == "eno1");
  CHECK(choose_interface({kAll[0], kAll[1]}, "", 1).chosen.name == "docker0");
  CHECK(choose_interface({kAll[0]}, "", 1).chosen.name == "lo");
}

TEST_CASE("C57: an exclusion that lets loopback in again is warned about") {
  const InterfaceChoice choice = choose_interface(kAll, "^docker0", 2);
  CHECK(choice.chosen.name == "ib0");
  REQUIRE(choice.warnings.size() == 1);
  CHECK(choice.warnings[0] ==
        "NCCL_SOCKET_IFNAME=^docker0 lets loopback in again; write ^docker0,lo");
  CHECK(choose_interface(kAll, "^docker0,lo", 2).warnings.empty());
}

TEST_CASE("C57: names are taken in order of wish") {
  CHECK(chosen("eno1,eth0") == "eno1");
  CHECK(chosen("eth0,eno") == "eno1");
  CHECK(chosen("=ib0") == "ib0");
  CHECK(error_of("=ib") != "none");
}

TEST_CASE("C57: loopback with two nodes and an unknown name are errors before the start") {
  CHECK(error_of("lo").starts_with("2 nodes cannot reach one another by lo;"));
  CHECK(chosen("lo", 1) == "lo");
  CHECK(error_of("foo") ==
        "NCCL_SOCKET_IFNAME=foo: no such interface; there is: lo (127.0.0.1), docker0 "
        "(172.17.0.1), veth1a2b (169.254.1.1), eno1 (10.0.0.7), ib0 (10.1.0.7)");
}

TEST_CASE("interfaces: this machine has loopback") {
  bool found = false;
  for (const Interface& one : local_interfaces()) found |= one.address == "127.0.0.1";
  CHECK(found);
}

TEST_CASE("interfaces: by their address; what the kernel does not count is 0") {
  CHECK(interface_with("127.0.0.1") == "lo");
  CHECK_FALSE(interface_with("203.0.113.7"));
  CHECK_FALSE(interface_with(""));
  CHECK(link_losses("no-such-interface") == 0);
  CHECK(link_losses("../../etc") == 0);
}
