#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mm::probe {

enum class Collective {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kSendReceive,  ///< every rank to the next one, in a ring
};

/// "all_reduce", "all_gather", ...
const char* word(Collective collective);
std::optional<Collective> collective_of(const std::string& word);
std::vector<std::string> collective_words();

/// What the bytes of one rank's buffer cost on the wire, by nccl-tests' definitions: S is the size
/// of the larger of a rank's two buffers (for all-gather the gathered one, for reduce-scatter and
/// all-to-all the whole input), algbw = S / t, busbw = algbw * factor with
///   all-reduce 2 (n-1)/n; all-gather, reduce-scatter, all-to-all (n-1)/n; others 1.
double bus_factor(Collective collective, int ranks);

struct Bandwidth {
  double algorithm_gb_s = 0, bus_gb_s = 0;  ///< GB = 1e9 bytes
};
Bandwidth bandwidth(Collective collective, int ranks, double bytes, double seconds);

/// t = latency + S / bandwidth, by least squares of relative errors over points (bytes, seconds),
/// so that small sizes count as much as large ones. Nothing below two different sizes.
struct LatencyFit {
  double latency_us = 0;
  double gb_s = 0;
};
std::optional<LatencyFit> fit_latency(const std::vector<std::pair<double, double>>& points);

}  // namespace mm::probe
