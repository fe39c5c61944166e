#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>

#include "lib/base/error.h"
#include "lib/base/slurm.h"
#include "lib/health/slurm_switches.h"

namespace mm::health {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// "Key=Value Key=Value", keys in any case.
std::map<std::string, std::string> fields_of(const std::string& line) {
  std::map<std::string, std::string> fields;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos)
      fields[lower(word.substr(0, equals))] = word.substr(equals + 1);
  }
  return fields;
}

// The switches over `name`, nearest first; a cycle in the file ends at its first repetition.
std::vector<std::string> above(const std::vector<SlurmSwitch>& switches, const std::string& name) {
  std::vector<std::string> path;
  std::string at = name;
  for (bool found = true; found;) {
    found = false;
    for (const SlurmSwitch& one : switches) {
      if (std::find(one.below.begin(), one.below.end(), at) == one.below.end() ||
          std::find(path.begin(), path.end(), one.name) != path.end())
        continue;
      path.push_back(one.name);
      at = one.name;
      found = true;
      break;
    }
  }
  return path;
}

}  // namespace

std::vector<LeafSwitch> leaves_of(const std::vector<SlurmSwitch>& switches) {
  std::vector<LeafSwitch> leaves;
  for (const SlurmSwitch& one : switches) {
    if (one.nodes.empty()) continue;
    leaves.push_back({one.name, above(switches, one.name), one.nodes});
  }
  return leaves;
}

std::vector<std::string> expand_at(const std::string& list, const std::string& origin, int line) {
  try {
    return list.empty() ? std::vector<std::string>() : slurm::expand_hostlist(list);
  } catch (const Error& error) {
    throw DataError("{}:{}: {}", origin, line, error.what());
  }
}

std::vector<LeafSwitch> parse_slurm_topology(const std::string& text, const std::string& origin) {
  std::vector<SlurmSwitch> switches;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    auto fields = fields_of(line);
    std::string name = fields["switchname"];
    if (name.empty()) name = fields["blockname"];
    if (name.empty()) name = fields["ringname"];
    if (name.empty()) continue;
    switches.push_back({.name = name,
                        .below = expand_at(fields["switches"], origin, number),
                        .nodes = expand_at(fields["nodes"], origin, number)});
  }
  auto leaves = leaves_of(switches);
  if (leaves.empty())
    throw DataError("{}: no line with SwitchName=, BlockName= or RingName= and Nodes=", origin);
  return leaves;
}

std::vector<std::string> order_hosts(const std::vector<std::string>& hosts,
                                     const std::vector<LeafSwitch>& leaves) {
  std::vector<const LeafSwitch*> order;
  for (const LeafSwitch& leaf : leaves) order.push_back(&leaf);
  // From the top down, so that leaves under one spine are neighbours.
  std::stable_sort(order.begin(), order.end(), [](const LeafSwitch* a, const LeafSwitch* b) {
    return std::lexicographical_compare(a->above.rbegin(), a->above.rend(), b->above.rbegin(),
                                        b->above.rend());
  });
  std::vector<std::string> ordered, left = hosts;
  for (const LeafSwitch* leaf : order) {
    for (const std::string& host : hosts) {
      if (std::find(leaf->nodes.begin(), leaf->nodes.end(), host) == leaf->nodes.end()) continue;
      if (std::erase(left, host) > 0) ordered.push_back(host);
    }
  }
  ordered.insert(ordered.end(), left.begin(), left.end());
  return ordered;
}

}  // namespace mm::health
