#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/health/expectation.h"
#include "lib/health/finding.h"
#include "lib/health/system_tree.h"

namespace mm::health {

/// One port of an InfiniBand or RoCE device, from /sys/class/infiniband.
struct IbPort {
  std::string device;  ///< "mlx5_0"
  int port = 1;
  std::string state;                         ///< "4: ACTIVE"
  std::string phys_state;                    ///< "5: LinkUp"
  std::string rate;                          ///< "400 Gb/sec (4X NDR)"
  std::string link_layer;                    ///< "InfiniBand" or "Ethernet"
  std::string netdev;                        ///< "ib0"; empty if not known
  std::map<std::string, uint64_t> counters;  ///< counters/ and hw_counters/; port_*_data in 4 bytes

  std::string label() const;
  bool active() const { return state.starts_with("4:"); }
  double rate_gbit_s() const;                       ///< 0 if the text is no rate
  uint64_t counter(const std::string& name) const;  ///< 0 if absent
};

std::vector<IbPort> read_ib_ports(const SystemTree& tree);

/// The same in a child process: counters are asked of the card's firmware, which may be dead.
/// Throws DeviceError when it does not answer within `deadline_ms`.
std::vector<IbPort> read_ib_ports_guarded(const SystemTree& tree, int deadline_ms);

Json ib_ports_json(const std::vector<IbPort>& ports);

/// F09 down, F10 flapping, F11 slow, F49 errors, F51 fewer ports than expected.
std::vector<Finding> judge_ib_ports(const std::vector<IbPort>& ports, const Expectation& expected);

}  // namespace mm::health
