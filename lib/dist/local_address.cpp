#include "lib/dist/local_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "lib/base/error.h"

namespace mm::dist {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;
using InterfaceList = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

AddressList resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(host.c_str(), "9", &hints, &list);
  if (code != 0) {
    throw CommError("address \"{}\" does not resolve ({}); set MASTER_ADDR to the host of rank 0",
                    host, gai_strerror(code));
  }
  return {list, &freeaddrinfo};
}

InterfaceList interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  return {list, &freeifaddrs};
}

std::string numeric(const sockaddr* address) {
  const socklen_t length =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  char text[NI_MAXHOST] = {};
  getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

bool is_internet(const sockaddr* address) {
  return address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

/// The source address that the kernel would use; a datagram socket's connect sends nothing.
std::string route_source(const addrinfo& target) {
  const int fd = socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  sockaddr_storage source{};
  socklen_t length = sizeof(source);
  const bool found = connect(fd, target.ai_addr, target.ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&source), &length) == 0;
  close(fd);
  return found ? numeric(reinterpret_cast<const sockaddr*>(&source)) : std::string();
}

/// First address of an interface that is up and `wanted`; IPv4 before IPv6. Empty if none.
std::string first_address(const std::function<bool(const ifaddrs&)>& wanted) {
  const InterfaceList list = interfaces();
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next) {
      if (!is_internet(i->ifa_addr) || i->ifa_addr->sa_family != family) continue;
      if ((i->ifa_flags & IFF_UP) != 0 && wanted(*i)) return numeric(i->ifa_addr);
    }
  }
  return {};
}

}  // namespace

std::string address_towards(const std::string& peer) {
  const AddressList targets = resolve(peer);
  std::string source;
  for (const addrinfo* target = targets.get(); target != nullptr && source.empty();
       target = target->ai_next) {
    source = route_source(*target);
  }
  if (source.empty())
    throw CommError("no route to \"{}\"; check MASTER_ADDR and the network of this host", peer);
  const bool meant_loopback = peer == "localhost" || is_loopback(peer);
  if (!is_loopback(source) || meant_loopback) return source;
  const std::string other =
      first_address([](const ifaddrs& i) { return (i.ifa_flags & IFF_LOOPBACK) == 0; });
  return other.empty() ? source : other;
}

std::string address_of_interface(const std::string& name) {
  const std::string address = first_address([&](const ifaddrs& i) { return name == i.ifa_name; });
  if (!address.empty()) return address;
  std::string known;
  const InterfaceList list = interfaces();
  for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", i->ifa_name);
  }
  throw UsageError("network interface \"{}\" has no address that is up; this host has: {}", name,
                   known);
}

bool is_this_host(const std::string& host) {
  const AddressList targets = resolve(host);
  for (const addrinfo* target = targets.get(); target != nullptr; target = target->ai_next) {
    const std::string address = numeric(target->ai_addr);
    if (is_loopback(address)) return true;
    if (!first_address([&](const ifaddrs& i) { return numeric(i.ifa_addr) == address; }).empty())
      return true;
  }
  return false;
}

}  // namespace mm::dist
