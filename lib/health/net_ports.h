#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/health/expectation.h"
#include "lib/health/finding.h"
#include "lib/health/system_tree.h"

namespace mm::health {

/// A network interface of the kernel, from /sys/class/net.
struct NetworkPort {
  std::string name;
  std::string state;                    ///< the kernel's operstate: "up", "down", "unknown"
  std::optional<int64_t> speed_mbit_s;  ///< nothing if the driver does not say
  std::optional<int64_t> mtu, carrier_downs;
  bool is_virtual = false;  ///< no device behind it: docker0, veth, a bridge
  std::optional<int64_t> rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors,
      rx_dropped, tx_dropped;
};

/// All but loopback.
std::vector<NetworkPort> read_net_ports(const SystemTree& tree);

/// F09 none or a required one down, F10 flapping, F11 slow, F49 errors.
std::vector<Finding> judge_net_ports(const std::vector<NetworkPort>& ports,
                                     const Expectation& expected);

}  // namespace mm::health
