#include "lib/health/ib_ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"
#include "lib/health/guarded_call.h"

namespace mm::health {
namespace {

// Counters whose growth is a fault of link or cable. symbol_error saturates at its width on old
// cards, which is above any limit.
constexpr std::array kErrors = {"symbol_error",
                                "link_error_recovery",
                                "local_link_integrity_errors",
                                "port_rcv_errors",
                                "port_rcv_remote_physical_errors",
                                "excessive_buffer_overrun_errors",
                                "port_xmit_constraint_errors",
                                "port_rcv_constraint_errors",
                                "roce_adp_retrans_to",
                                "local_ack_timeout_err"};

void read_counters(const SystemTree& tree, const std::string& directory, IbPort& port) {
  for (const std::string& name : tree.names(directory)) {
    if (name == "lifespan") continue;
    const auto value = tree.number(directory + "/" + name);
    if (value && *value >= 0) port.counters[escape_text(name)] = static_cast<uint64_t>(*value);
  }
}

IbPort read_port(const SystemTree& tree, const std::string& device, const std::string& number) {
  const std::string at = "/sys/class/infiniband/" + device + "/ports/" + number;
  IbPort port{.device = escape_text(device), .port = std::atoi(number.c_str())};
  port.state = escape_text(tree.text(at + "/state").value_or(""));
  port.phys_state = escape_text(tree.text(at + "/phys_state").value_or(""));
  port.rate = escape_text(tree.text(at + "/rate").value_or(""));
  port.link_layer = escape_text(tree.text(at + "/link_layer").value_or(""));
  const auto netdevs = tree.names("/sys/class/infiniband/" + device + "/device/net");
  if (!netdevs.empty()) port.netdev = escape_text(netdevs.front());
  read_counters(tree, at + "/counters", port);
  read_counters(tree, at + "/hw_counters", port);
  return port;
}

void judge_link(const IbPort& port, const Expectation& expected, std::vector<Finding>& findings) {
  if (!port.active()) {
    findings.push_back(
        {.level = Level::kBad,
         .code = "F09",
         .where = port.label(),
         .what = "port is down",
         .evidence = fmt::format("state \"{}\", phys_state \"{}\"", port.state, port.phys_state),
         .action = "restart without this node, or on its other rails; check cable "
                   "and switch port"});
    return;
  }
  const auto rate = expected.infiniband.rate_gbit_s;
  if (rate && port.rate_gbit_s() < static_cast<double>(*rate)) {
    findings.push_back(
        {.level = Level::kBad,
         .code = "F11",
         .where = port.label(),
         .what = "port is slower than expected",
         .evidence = fmt::format("rate \"{}\", expected {} Gb/sec", port.rate, *rate),
         .action = "exclude the node; check cable, transceiver and switch port"});
  }
}

void judge_counters(const IbPort& port, const Expectation& expected,
                    std::vector<Finding>& findings) {
  const uint64_t downed = port.counter("link_downed");
  if (downed > static_cast<uint64_t>(expected.infiniband.link_downed_max)) {
    findings.push_back({.level = Level::kBad,
                        .code = "F10",
                        .where = port.label(),
                        .what = "port is flapping",
                        .evidence = fmt::format("link_downed {}, at most {} expected", downed,
                                                expected.infiniband.link_downed_max),
                        .action = "exclude the node at the next restart; do not abort while "
                                  "traffic flows; check the cable"});
  }
  std::string errors;
  for (const char* name : kErrors) {
    const uint64_t count = port.counter(name);
    if (count > static_cast<uint64_t>(expected.infiniband.errors_max))
      errors += fmt::format("{}{} {}", errors.empty() ? "" : ", ", name, count);
  }
  if (!errors.empty()) {
    findings.push_back(
        {.level = Level::kWarn,
         .code = "F49",
         .where = port.label(),
         .what = "link errors",
         .evidence = fmt::format("{}; at most {} expected", errors, expected.infiniband.errors_max),
         .action = "watch whether they rise; clean or replace the cable"});
  }
}

}  // namespace

std::string IbPort::label() const { return fmt::format("{} port {}", device, port); }

double IbPort::rate_gbit_s() const { return std::strtod(rate.c_str(), nullptr); }

uint64_t IbPort::counter(const std::string& name) const {
  const auto it = counters.find(name);
  return it == counters.end() ? 0 : it->second;
}

std::vector<IbPort> read_ib_ports(const SystemTree& tree) {
  std::vector<IbPort> ports;
  const std::string base = "/sys/class/infiniband";
  for (const std::string& device : tree.names(base)) {
    for (const std::string& number : tree.names(base + "/" + device + "/ports"))
      ports.push_back(read_port(tree, device, number));
  }
  return ports;
}

Json ib_ports_json(const std::vector<IbPort>& ports) {
  Json all = Json::array();
  for (const IbPort& port : ports)
    all.push_back({{"device", escape_text(port.device)},
                   {"port", port.port},
                   {"state", escape_text(port.state)},
                   {"phys_state", escape_text(port.phys_state)},
                   {"rate", escape_text(port.rate)},
                   {"link_layer", escape_text(port.link_layer)},
                   {"netdev", escape_text(port.netdev)},
                   {"counters", port.counters}});
  return all;
}

std::vector<IbPort> read_ib_ports_guarded(const SystemTree& tree, int deadline_ms) {
  if (tree.names("/sys/class/infiniband").empty()) return {};
  GuardedCall call = GuardedCall::start([&] { return ib_ports_json(read_ib_ports(tree)).dump(); });
  const auto answer = call.finish(deadline_ms);
  if (!answer) throw DeviceError("InfiniBand counters: {}", answer.failure().message);
  std::vector<IbPort> ports;
  for (const Json& one : parse_json(*answer, "InfiniBand report"))
    ports.push_back({one["device"], one["port"], one["state"], one["phys_state"], one["rate"],
                     one["link_layer"], one["netdev"],
                     one["counters"].get<std::map<std::string, uint64_t>>()});
  return ports;
}

std::vector<Finding> judge_ib_ports(const std::vector<IbPort>& ports, const Expectation& expected) {
  std::vector<Finding> findings;
  int64_t judged = 0, active = 0;
  const auto& ignore = expected.infiniband.ignore;
  for (const IbPort& port : ports) {
    if (std::find(ignore.begin(), ignore.end(), port.device) != ignore.end()) continue;
    ++judged;
    active += port.active() ? 1 : 0;
    judge_link(port, expected, findings);
    judge_counters(port, expected, findings);
  }
  const auto wanted = expected.infiniband.ports;
  if (wanted && judged < *wanted) {
    findings.push_back({.level = Level::kBad,
                        .code = "F51",
                        .where = "InfiniBand",
                        .what = "ports are missing",
                        .evidence = fmt::format("{} found, {} expected", judged, *wanted),
                        .action = "exclude the node; check cards and driver"});
  }
  if (judged == 0 && !wanted) return {not_checked("InfiniBand", "no device")};
  if (findings.empty())
    findings.push_back(ok("InfiniBand", fmt::format("{} ports active", active)));
  return findings;
}

}  // namespace mm::health
