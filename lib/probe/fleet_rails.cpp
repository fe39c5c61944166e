#include "lib/probe/fleet_rails.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/text_escape.h"
#include "lib/probe/pair_transport.h"

namespace mm::probe {
namespace {

constexpr const char* kWayToRank0 = "the way to rank 0";
constexpr size_t kNodesNamed = 8;  // in one line
constexpr double kMost = 0.7;

/// What one rank says of its rails.
struct Offer {
  std::string host;
  std::vector<std::string> settings;            ///< in the order that it was told
  std::map<std::string, std::string> problems;  ///< by setting; empty: there
};

Offer offer_from(const std::string& text) {
  const Json json = parse_json(text, "rails of a rank");
  Offer offer{.host = escape_text(json.at("host").get<std::string>(), 200)};
  for (const Json& rail : json.at("rails")) {
    offer.settings.push_back(rail.at("setting"));
    offer.problems[offer.settings.back()] = escape_text(rail.at("problem").get<std::string>(), 400);
  }
  return offer;
}

/// Nodes without a rail, each with its reason; `untold`: those that nobody told of it, by a rank.
struct Lack {
  std::map<std::string, std::string> why;
  std::set<std::string> untold, hosts;  ///< `hosts`: all nodes
};

Lack lack_of(const std::string& setting, const std::vector<Offer>& offers) {
  Lack lack;
  for (const Offer& offer : offers) {
    lack.hosts.insert(offer.host);
    const auto found = offer.problems.find(setting);
    if (found == offer.problems.end()) {
      lack.untold.insert(offer.host);
      lack.why.emplace(offer.host, "was not told of it");
    } else if (!found->second.empty()) {
      lack.why.emplace(offer.host, found->second);
    }
  }
  return lack;
}

/// "a: no such interface; b: was not told of it; and 62 more nodes"
std::string text_of(const Lack& lack) {
  std::string text;
  size_t named = 0;
  for (const auto& [host, why] : lack.why) {
    if (named == kNodesNamed) break;
    text += fmt::format("{}{}: {}", named++ == 0 ? "" : "; ", host, why);
  }
  if (named < lack.why.size()) text += fmt::format("; and {} more nodes", lack.why.size() - named);
  return text;
}

/// The few are at fault where most have it.
void charge(const std::string& setting, const Lack& lack, std::vector<health::Finding>& findings) {
  const size_t have = lack.hosts.size() - lack.why.size();
  if (static_cast<double>(have) < kMost * static_cast<double>(lack.hosts.size())) return;
  for (const auto& [host, why] : lack.why) {
    if (lack.untold.contains(host)) continue;
    findings.push_back(
        {.level = health::Level::kBad,
         .code = "F09",
         .where = "rail " + escape_text(setting),
         .what = fmt::format("not there; {} of {} nodes have it", have, lack.hosts.size()),
         .evidence = why,
         .action = "bring the interface up, or exclude the node",
         .since_unix_ms = {},
         .hosts = {host}});
  }
}

/// What this rank says; `own` gets what it has, by setting.
Json own_offer(const std::vector<std::string>& settings, int nodes, const std::string& address,
               std::map<std::string, Interface>& own) {
  Json rails = Json::array();
  const auto add = [&](const std::string& setting, const std::vector<std::string>& wanted) {
    std::string problem;
    try {
      own[setting] = choose_rails(wanted, address, nodes).at(0);
    } catch (const UsageError& error) {
      problem = error.what();
    }
    rails.push_back({{"setting", setting}, {"problem", problem}});
  };
  if (settings.empty()) add(kWayToRank0, {});
  for (const std::string& setting : settings) add(setting, {setting});
  return rails;
}

/// Each setting once, in the order of the ranks and of what they were told.
std::vector<std::string> all_settings(const std::vector<Offer>& offers) {
  std::vector<std::string> all;
  for (const Offer& offer : offers) {
    for (const std::string& setting : offer.settings)
      if (std::find(all.begin(), all.end(), setting) == all.end()) all.push_back(setting);
  }
  return all;
}

}  // namespace

AgreedRails judge_rails(const std::vector<std::string>& offers_by_rank,
                        const std::map<std::string, Interface>& own) {
  std::vector<Offer> offers;
  for (const std::string& text : offers_by_rank) offers.push_back(offer_from(text));
  AgreedRails agreed;
  for (const std::string& setting : all_settings(offers)) {
    const Lack lack = lack_of(setting, offers);
    if (lack.why.empty()) {
      agreed.rails.push_back(own.at(setting));
      continue;
    }
    agreed.left_out += fmt::format("{}{} ({})", agreed.left_out.empty() ? "" : ", ",
                                   escape_text(setting), text_of(lack));
    charge(setting, lack, agreed.missing);
  }
  return agreed;
}

AgreedRails agree_on_rails(const std::vector<std::string>& settings, int nodes,
                           const std::string& host, RankStar& star) {
  std::map<std::string, Interface> own;
  const Json rails = own_offer(settings, nodes, star.own_address(), own);
  return judge_rails(star.all_gather(Json{{"host", host}, {"rails", rails}}.dump()), own);
}

}  // namespace mm::probe
