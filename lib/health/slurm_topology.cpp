#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>

#include "lib/base/error.h"
#include "lib/base/slurm.h"
#include "lib/base/text_escape.h"
#include "lib/health/topology.h"

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

struct Switch {
  std::string name;
  std::vector<std::string> below;  ///< switches
  std::vector<std::string> nodes;
};

// The switches over `name`, nearest first; a cycle in the file ends at its first repetition.
std::vector<std::string> above(const std::vector<Switch>& switches, const std::string& name) {
  std::vector<std::string> path;
  std::string at = name;
  for (bool found = true; found;) {
    found = false;
    for (const Switch& one : switches) {
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

std::vector<LeafSwitch> parse_slurm_topology(const std::string& text, const std::string& origin) {
  std::vector<Switch> switches;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    auto fields = fields_of(line);
    std::string name = fields["switchname"];
    if (name.empty()) name = fields["blockname"];
    if (name.empty()) continue;
    Switch one{.name = name};
    try {
      if (!fields["switches"].empty()) one.below = slurm::expand_hostlist(fields["switches"]);
      if (!fields["nodes"].empty()) one.nodes = slurm::expand_hostlist(fields["nodes"]);
    } catch (const Error& error) {
      throw DataError("{}:{}: {}", origin, number, error.what());
    }
    switches.push_back(std::move(one));
  }
  std::vector<LeafSwitch> leaves;
  for (const Switch& one : switches) {
    if (one.nodes.empty()) continue;
    leaves.push_back({one.name, above(switches, one.name), one.nodes});
  }
  if (leaves.empty())
    throw DataError("{}: no line with SwitchName= or BlockName= and Nodes=", origin);
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
