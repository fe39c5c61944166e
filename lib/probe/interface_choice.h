#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mm::probe {

struct Interface {
  std::string name;
  std::string address;  ///< IPv4, numeric
};

/// Interfaces of this machine that are up and have an IPv4 address.
std::vector<Interface> local_interfaces();

/// The name of the local interface that has this address.
std::optional<std::string> interface_with(const std::string& address);

/// How often it lost its link since it came; 0 where the kernel does not say.
int64_t link_losses(const std::string& interface);

struct InterfaceChoice {
  Interface chosen;
  std::vector<std::string> warnings;  ///< one line each
};

/// What NCCL_SOCKET_IFNAME's `setting` means: names' beginnings by comma, in order of wish; "=" for
/// whole names, "^" for all but these; empty: InfiniBand first, then others, containers' and
/// loopback last. Warns of interfaces that lead nowhere (veth), and of an exclusion that lets
/// loopback in. Throws UsageError: nothing fits (lists what there is), or loopback with `nodes`
/// > 1.
InterfaceChoice choose_interface(const std::vector<Interface>& interfaces,
                                 const std::string& setting, int nodes);

}  // namespace mm::probe
