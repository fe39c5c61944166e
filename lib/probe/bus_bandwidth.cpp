#include "lib/probe/bus_bandwidth.h"

#include <algorithm>
#include <array>

namespace mm::probe {
namespace {

constexpr std::array kAll = {Collective::kAllReduce,     Collective::kAllGather,
                             Collective::kReduceScatter, Collective::kAllToAll,
                             Collective::kBroadcast,     Collective::kReduce,
                             Collective::kSendReceive};

}  // namespace

const char* word(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kAllToAll:
      return "all_to_all";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kReduce:
      return "reduce";
    case Collective::kSendReceive:
      break;
  }
  return "send_receive";
}

std::optional<Collective> collective_of(const std::string& text) {
  for (const Collective one : kAll)
    if (text == word(one)) return one;
  return std::nullopt;
}

std::vector<std::string> collective_words() {
  std::vector<std::string> words;
  for (const Collective one : kAll) words.emplace_back(word(one));
  return words;
}

double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return (n - 1) / n;
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kSendReceive:
      break;
  }
  return 1;
}

Bandwidth bandwidth(Collective collective, int ranks, double bytes, double seconds) {
  const double algorithm = seconds > 0 ? 1e-9 * bytes / seconds : 0;
  return {algorithm, algorithm * bus_factor(collective, ranks)};
}

// Minimise sum ((a + b S - t) / t)^2: linear in a and b with weights 1/t^2.
std::optional<LatencyFit> fit_latency(const std::vector<std::pair<double, double>>& points) {
  double w = 0, ws = 0, wss = 0, wt = 0, wst = 0;
  for (const auto& [bytes, seconds] : points) {
    if (seconds <= 0) continue;
    const double weight = 1 / (seconds * seconds);
    w += weight;
    ws += weight * bytes;
    wss += weight * bytes * bytes;
    wt += weight * seconds;
    wst += weight * bytes * seconds;
  }
  const double determinant = w * wss - ws * ws;
  if (determinant <= 1e-12 * w * wss) return std::nullopt;
  const double per_byte = (w * wst - ws * wt) / determinant;
  const double latency = (wss * wt - ws * wst) / determinant;
  if (per_byte <= 0) return std::nullopt;
  return LatencyFit{std::max(0.0, 1e6 * latency), 1e-9 / per_byte};
}

}  // namespace mm::probe
