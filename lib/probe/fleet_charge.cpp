#include <algorithm>
#include <map>

#include "lib/probe/fleet_links.h"

namespace mm::probe {
namespace {

using health::Finding;
using health::Level;

NodeResult* node_of(FleetReport& report, const std::string& host) {
  for (NodeResult& node : report.nodes)
    if (node.host == host) return &node;
  return nullptr;
}

// Two checks may see the same fault.
void charge(NodeResult& node, const Finding& finding, Level level) {
  for (Finding& known : node.faults) {
    if (known.code != finding.code || known.what != finding.what || known.hosts != finding.hosts)
      continue;
    if (level == Level::kBad) known.level = Level::kBad;
    return;
  }
  node.faults.push_back(finding);
  node.faults.back().level = level;
}

// The end of a bad link that pays for it: one that is bad anyway, else the one with most bad links
// that are still uncovered, else the later node.
NodeResult* payer(FleetReport& report, const Finding& link, const std::vector<Finding>& open) {
  NodeResult* a = node_of(report, link.hosts[0]);
  NodeResult* b = node_of(report, link.hosts[1]);
  if (any_bad(a->faults) != any_bad(b->faults)) return any_bad(a->faults) ? a : b;
  const auto links_of = [&](const NodeResult* node) {
    return std::count_if(open.begin(), open.end(), [&](const Finding& one) {
      return std::find(one.hosts.begin(), one.hosts.end(), node->host) != one.hosts.end();
    });
  };
  return links_of(a) > links_of(b) ? a : b;
}

// The link whose payer has most links first, so that few nodes cover all of them.
size_t next_link(const std::vector<Finding>& open) {
  std::map<std::string, int> count;
  for (const Finding& one : open)
    for (const std::string& host : one.hosts) ++count[host];
  const auto weight = [&](const Finding& one) {
    return std::max(count[one.hosts[0]], count[one.hosts[1]]);
  };
  size_t best = 0;
  for (size_t i = 1; i < open.size(); ++i)
    if (weight(open[i]) > weight(open[best])) best = i;
  return best;
}

void charge_pairs(FleetReport& report, std::vector<Finding> open) {
  while (!open.empty()) {
    const Finding link = open[next_link(open)];
    NodeResult* bad = payer(report, link, open);
    std::vector<Finding> left;
    for (const Finding& one : open) {
      const auto end = std::find(one.hosts.begin(), one.hosts.end(), bad->host);
      if (end == one.hosts.end()) {
        left.push_back(one);
        continue;
      }
      charge(*bad, one, Level::kBad);
      const std::string& other = one.hosts[end == one.hosts.begin() ? 1 : 0];
      charge(*node_of(report, other), one, Level::kWarn);
    }
    open = std::move(left);
  }
}

}  // namespace

void charge_links(FleetReport& report) {
  std::vector<Finding> rest, links;
  for (Finding& finding : report.links) {
    const bool known =
        std::all_of(finding.hosts.begin(), finding.hosts.end(),
                    [&](const std::string& host) { return node_of(report, host) != nullptr; });
    if (finding.code.empty() || !known || finding.hosts.empty() || finding.hosts.size() > 2) {
      rest.push_back(std::move(finding));
    } else if (finding.hosts.size() == 1) {
      charge(*node_of(report, finding.hosts[0]), finding, finding.level);
    } else if (finding.level == Level::kBad) {
      links.push_back(std::move(finding));
    } else {
      for (const std::string& host : finding.hosts)
        charge(*node_of(report, host), finding, finding.level);
    }
  }
  charge_pairs(report, std::move(links));
  report.links = std::move(rest);
  for (NodeResult& node : report.nodes) sort_findings(node.faults);
}

}  // namespace mm::probe
