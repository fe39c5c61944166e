#include "lib/probe/interface_choice.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/health/system_tree.h"

namespace mm::probe {
namespace {

bool loopback(const std::string& name) { return name == "lo" || name.starts_with("lo:"); }
bool container(const std::string& name) {
  return name.starts_with("docker") || name.starts_with("veth") || name.starts_with("br-") ||
         name.starts_with("virbr") || name.starts_with("cni") || name.starts_with("flannel");
}

int rank_of(const std::string& name) {
  if (loopback(name)) return 3;
  if (container(name)) return 2;
  return name.starts_with("ib") ? 0 : 1;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  std::erase(parts, "");
  return parts;
}

bool fits(const std::string& name, const std::string& pattern, bool exact) {
  return exact ? name == pattern : name.starts_with(pattern);
}

std::string list(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& one : interfaces)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.name, one.address);
  return text.empty() ? "none" : text;
}

const Interface* by_rank(const std::vector<Interface>& candidates) {
  const auto best = std::min_element(
      candidates.begin(), candidates.end(),
      [](const Interface& a, const Interface& b) { return rank_of(a.name) < rank_of(b.name); });
  return best == candidates.end() ? nullptr : &*best;
}

}  // namespace

std::vector<Interface> local_interfaces() {
  std::vector<Interface> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
        (one->ifa_flags & IFF_UP) == 0)
      continue;
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(one->ifa_addr)->sin_addr, text,
                sizeof(text));
    found.push_back({one->ifa_name, text});
  }
  ::freeifaddrs(all);
  return found;
}

std::optional<std::string> interface_with(const std::string& address) {
  for (const Interface& one : local_interfaces())
    if (one.address == address) return one.name;
  return std::nullopt;
}

int64_t link_losses(const std::string& interface) {
  return health::SystemTree()
      .number("/sys/class/net/" + interface + "/carrier_down_count")
      .value_or(0);
}

InterfaceChoice choose_interface(const std::vector<Interface>& interfaces,
                                 const std::string& setting, int nodes) {
  std::string text = setting;
  const bool exclude = text.starts_with("^");
  if (exclude) text.erase(0, 1);
  const bool exact = text.starts_with("=");
  if (exact) text.erase(0, 1);
  const std::vector<std::string> patterns = split(text);
  InterfaceChoice choice;
  const Interface* chosen = nullptr;
  std::vector<Interface> left = interfaces;
  if (exclude || patterns.empty()) {
    std::erase_if(left, [&](const Interface& one) {
      return std::any_of(patterns.begin(), patterns.end(),
                         [&](const std::string& p) { return fits(one.name, p, exact); });
    });
    chosen = by_rank(left);
  }
  for (const std::string& pattern : patterns) {
    for (const Interface& one : interfaces) {
      if (!exclude && chosen == nullptr && fits(one.name, pattern, exact)) chosen = &one;
    }
  }
  if (chosen == nullptr)
    throw UsageError("NCCL_SOCKET_IFNAME={}: no such interface; there is: {}", setting,
                     list(interfaces));
  if (loopback(chosen->name) && nodes > 1)
    throw UsageError("{} nodes cannot reach one another by {}; name another interface: {}", nodes,
                     chosen->name, list(interfaces));
  choice.chosen = *chosen;
  if (exclude && std::any_of(left.begin(), left.end(),
                             [](const Interface& one) { return loopback(one.name); }))
    choice.warnings.push_back(
        fmt::format("NCCL_SOCKET_IFNAME={0} lets loopback in again; write {0},lo", setting));
  if (container(chosen->name))
    choice.warnings.push_back(
        fmt::format("{} leads to containers of this machine only", chosen->name));
  for (const Interface& one : left) {
    if (patterns.empty() && one.name.starts_with("veth"))
      choice.warnings.push_back(
          fmt::format("{} is a container's and not used; NCCL may try it: set "
                      "NCCL_SOCKET_IFNAME={}",
                      one.name, chosen->name));
  }
  return choice;
}

}  // namespace mm::probe
