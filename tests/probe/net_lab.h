#pragma once
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace mm::probe::test {

/// Network namespaces of this machine as nodes of a cluster, each with interface "eth0", behind one
/// bridge (10.77.0.1, 10.77.0.2, ...). Needs root and iproute2; `ready()` says whether it stands.
class NetLab {
 public:
  explicit NetLab(int nodes) : nodes_(nodes), name_("mmlab" + std::to_string(::getpid() % 10000)) {
    ready_ = sh("ip netns add " + space(-1)) && sh(inside(-1) + "ip link add br0 type bridge") &&
             sh(inside(-1) + "ip link set br0 up");
    for (int node = 0; node < nodes && ready_; ++node) ready_ = add(node);
  }
  NetLab(const NetLab&) = delete;
  ~NetLab() {
    for (int node = -1; node < nodes_; ++node) sh("ip netns del " + space(node));
  }
  bool ready() const { return ready_; }
  std::string address(int node) const { return "10.77.0." + std::to_string(node + 1); }
  /// In front of a command: runs it on that node.
  std::string inside(int node) const { return "ip netns exec " + space(node) + " "; }
  /// At most this rate leaves the node; set for all, it hides how busy this machine is.
  bool limit(int node, const std::string& rate, const std::string& interface = "eth0") const {
    return sh(inside(node) + "tc qdisc replace dev " + interface + " root tbf rate " + rate +
              " burst 64kb latency 400ms");
  }
  /// A second interface "eth1" (10.78.0.x) behind a bridge of its own.
  bool add_rail(int node) const {
    const std::string port = "q" + std::to_string(node);
    return (node > 0 || (sh(inside(-1) + "ip link add br1 type bridge") &&
                         sh(inside(-1) + "ip link set br1 up"))) &&
           attach(node, "eth1", port, "br1", "10.78.0." + std::to_string(node + 1));
  }
  /// The switch's side of that rail.
  bool rail(int node, bool up) const {
    return sh(inside(-1) + "ip link set q" + std::to_string(node) + (up ? " up" : " down"));
  }
  static bool sh(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  }

 private:
  std::string space(int node) const {
    return name_ + (node < 0 ? "s" : "n" + std::to_string(node));
  }
  bool add(int node) const {
    return sh("ip netns add " + space(node)) && sh(inside(node) + "ip link set lo up") &&
           attach(node, "eth0", "p" + std::to_string(node), "br0", address(node));
  }
  bool attach(int node, const std::string& interface, const std::string& port,
              const std::string& bridge, const std::string& address) const {
    return sh("ip link add " + interface + " netns " + space(node) + " type veth peer name " +
              port + " netns " + space(-1)) &&
           sh(inside(-1) + "ip link set " + port + " master " + bridge) &&
           sh(inside(-1) + "ip link set " + port + " up") &&
           sh(inside(node) + "ip addr add " + address + "/24 dev " + interface) &&
           sh(inside(node) + "ip link set " + interface + " up");
  }

  int nodes_;
  std::string name_;
  bool ready_ = false;
};

}  // namespace mm::probe::test
