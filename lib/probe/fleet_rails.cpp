#include "lib/probe/fleet_rails.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/text_escape.h"
#include "lib/probe/pair_transport.h"

namespace mm::probe {
namespace {

constexpr const char* kWayToRank0 = "the way to rank 0";

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

/// Who lacks the rail, and why; empty if all have it.
std::string lacking(const std::string& setting, const std::vector<Offer>& offers) {
  std::string text;
  for (const Offer& offer : offers) {
    const auto found = offer.problems.find(setting);
    if (found != offer.problems.end() && found->second.empty()) continue;
    const std::string why = found == offer.problems.end() ? "was not told of it" : found->second;
    // Ranks of one node say the same.
    const std::string line = fmt::format("{}: {}", offer.host, why);
    if (text.find(line) == std::string::npos) text += (text.empty() ? "" : "; ") + line;
  }
  return text;
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

AgreedRails agree_on_rails(const std::vector<std::string>& settings, int nodes,
                           const std::string& host, RankStar& star) {
  std::map<std::string, Interface> own;
  const Json rails = own_offer(settings, nodes, star.own_address(), own);
  std::vector<Offer> offers;
  for (const std::string& text : star.all_gather(Json{{"host", host}, {"rails", rails}}.dump()))
    offers.push_back(offer_from(text));
  AgreedRails agreed;
  for (const std::string& setting : all_settings(offers)) {
    const std::string why = lacking(setting, offers);
    if (why.empty()) {
      agreed.rails.push_back(own.at(setting));
    } else {
      agreed.left_out +=
          fmt::format("{}{} ({})", agreed.left_out.empty() ? "" : ", ", escape_text(setting), why);
    }
  }
  if (agreed.rails.empty()) throw CommError("no rail that all have: {}", agreed.left_out);
  return agreed;
}

}  // namespace mm::probe
