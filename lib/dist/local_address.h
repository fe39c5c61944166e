#pragma once
#include <string>

namespace mm::dist {

/// The numeric address of this host by which `peer` (name or address) and the ranks near it can
/// reach us: the source address of the route to `peer`. When `peer` is this host by name but
/// resolves to loopback (Debian's 127.0.1.1), the first other address that is up, else loopback.
/// Throws CommError naming `peer` when it does not resolve.
std::string address_towards(const std::string& peer);

/// The first address of network interface `name`. Throws UsageError listing the interfaces that
/// exist.
std::string address_of_interface(const std::string& name);

/// Whether `host` resolves to an address of this machine. Throws CommError when it does not
/// resolve.
bool is_this_host(const std::string& host);

}  // namespace mm::dist
