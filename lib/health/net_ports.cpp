#include "lib/health/net_ports.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/text_escape.h"

namespace mm::health {
namespace {

constexpr const char* kCheckLink = "exclude the node; check cable and switch port";

std::string summary(const std::vector<NetworkPort>& ports) {
  std::string text;
  for (const NetworkPort& port : ports) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", port.name, port.state);
    if (port.speed_mbit_s) text += fmt::format(" {} Mbit/s", *port.speed_mbit_s);
  }
  return text;
}

bool up(const NetworkPort& port) { return port.state == "up" || port.state == "unknown"; }

void judge_required(const NetworkPort& port, const Expectation& expected,
                    std::vector<Finding>& findings) {
  const auto& e = expected.ethernet;
  if (!up(port)) {
    findings.push_back({.level = Level::kBad,
                        .code = "F09",
                        .where = port.name,
                        .what = "interface is down",
                        .evidence = fmt::format("operstate \"{}\"", port.state),
                        .action = kCheckLink});
  } else if (e.speed_mbit_s && port.speed_mbit_s && *port.speed_mbit_s < *e.speed_mbit_s) {
    findings.push_back(
        {.level = Level::kBad,
         .code = "F11",
         .where = port.name,
         .what = "interface is slower than expected",
         .evidence = fmt::format("{} Mbit/s, expected {}", *port.speed_mbit_s, *e.speed_mbit_s),
         .action = kCheckLink});
  } else if (e.mtu_min && port.mtu && *port.mtu < *e.mtu_min) {
    findings.push_back({.level = Level::kBad,
                        .code = "F11",
                        .where = port.name,
                        .what = "packets are smaller than expected",
                        .evidence = fmt::format("MTU {}, expected {}", *port.mtu, *e.mtu_min),
                        .action = "set the MTU as on the other nodes"});
  }
}

void judge_counters(const NetworkPort& port, const Expectation& expected,
                    std::vector<Finding>& findings) {
  const int64_t downs = port.carrier_downs.value_or(0);
  if (downs > expected.ethernet.carrier_down_max) {
    findings.push_back({.level = Level::kBad,
                        .code = "F10",
                        .where = port.name,
                        .what = "interface is flapping",
                        .evidence = fmt::format("lost its link {} times, at most {} expected",
                                                downs, expected.ethernet.carrier_down_max),
                        .action = "exclude the node at the next restart; check the cable"});
  }
  // Unsigned, since a counter may hold anything and a sum of two must not overflow.
  const auto sum = [](std::optional<int64_t> a, std::optional<int64_t> b) {
    return static_cast<uint64_t>(std::max<int64_t>(0, a.value_or(0))) +
           static_cast<uint64_t>(std::max<int64_t>(0, b.value_or(0)));
  };
  const uint64_t errors = sum(port.rx_errors, port.tx_errors);
  const uint64_t packets = sum(port.rx_packets, port.tx_packets);
  if (errors > 100 && static_cast<double>(errors) >
                          expected.ethernet.error_share_max * static_cast<double>(packets)) {
    findings.push_back({.level = Level::kWarn,
                        .code = "F49",
                        .where = port.name,
                        .what = "link errors",
                        .evidence = fmt::format("{} errors in {} packets", errors, packets),
                        .action = "watch whether they rise; replace the cable"});
  }
}

}  // namespace

std::vector<NetworkPort> read_net_ports(const SystemTree& tree) {
  std::vector<NetworkPort> ports;
  for (const std::string& name : tree.names("/sys/class/net")) {
    const std::string base = "/sys/class/net/" + name;
    const auto state = tree.text(base + "/operstate");
    if (name == "lo" || !state) continue;
    NetworkPort port{.name = escape_text(name),
                     .state = escape_text(*state),
                     .speed_mbit_s = tree.number(base + "/speed")};
    if (port.speed_mbit_s && *port.speed_mbit_s <= 0) port.speed_mbit_s.reset();
    port.mtu = tree.number(base + "/mtu");
    port.carrier_downs = tree.number(base + "/carrier_down_count");
    port.is_virtual = tree.resolved(base).string().find("/devices/virtual/") != std::string::npos;
    const std::string statistics = base + "/statistics/";
    port.rx_packets = tree.number(statistics + "rx_packets");
    port.tx_packets = tree.number(statistics + "tx_packets");
    port.rx_bytes = tree.number(statistics + "rx_bytes");
    port.tx_bytes = tree.number(statistics + "tx_bytes");
    port.rx_errors = tree.number(statistics + "rx_errors");
    port.tx_errors = tree.number(statistics + "tx_errors");
    port.rx_dropped = tree.number(statistics + "rx_dropped");
    port.tx_dropped = tree.number(statistics + "tx_dropped");
    ports.push_back(std::move(port));
  }
  return ports;
}

std::vector<Finding> judge_net_ports(const std::vector<NetworkPort>& ports,
                                     const Expectation& expected) {
  std::vector<Finding> findings;
  for (const std::string& name : expected.ethernet.required) {
    const auto port = std::find_if(ports.begin(), ports.end(),
                                   [&](const NetworkPort& p) { return p.name == name; });
    if (port != ports.end()) {
      judge_required(*port, expected, findings);
      continue;
    }
    findings.push_back({.level = Level::kBad,
                        .code = "F51",
                        .where = name,
                        .what = "interface is missing",
                        .evidence = "found: " + summary(ports),
                        .action = "exclude the node; check card and driver"});
  }
  for (const NetworkPort& port : ports) judge_counters(port, expected, findings);
  if (ports.empty()) return {not_checked("network", "no interface but loopback")};
  if (std::none_of(ports.begin(), ports.end(), up)) {
    findings.push_back({.level = Level::kBad,
                        .code = "F09",
                        .where = "network",
                        .what = "no interface is up",
                        .evidence = summary(ports),
                        .action = kCheckLink});
  }
  if (findings.empty()) findings.push_back(ok("network", summary(ports)));
  return findings;
}

}  // namespace mm::health
