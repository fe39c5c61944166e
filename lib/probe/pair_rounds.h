#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/health/finding.h"

namespace mm::probe {

/// Two different members, by number; a < b.
struct Pair {
  int a = 0, b = 0;
  bool operator==(const Pair&) const = default;
};

/// Pairs that measure at the same time; nobody is in two of them.
using Slot = std::vector<Pair>;

/// What one pair measured over one rail.
struct PairMeasure {
  Pair pair;
  int rail = 0;
  double gb_s = 0;          ///< the slower direction
  double latency_us = 0;    ///< half a round trip, median
  std::string error;        ///< why there is no figure; empty: there is
  double stall_ms = 0;      ///< by how much its longest pause exceeds a usual one
  int64_t retransmits = 0;  ///< TCP segments that both ends sent again
  /// How often the interface of that end lost its link since the measurements began.
  int64_t losses_a = 0, losses_b = 0;
  std::vector<PairMeasure> again;  ///< of a suspect, measured again
};

/// Measures the pairs of a slot at the same time; results in the slot's order.
using MeasureSlot = std::function<std::vector<PairMeasure>(const Slot& slot, int rail)>;

/// Round 1: neighbours. Everybody is in at least one pair; with an odd number the last one pairs in
/// a slot of its own.
std::vector<Slot> first_round(int members);
/// Round 2: the slowest of round 1 with the fastest, and so on inwards, never the same pair again
/// where there is a choice.
std::vector<Slot> second_round(int members, const std::vector<PairMeasure>& first);
/// Everybody with everybody: members - 1 slots (members, if odd).
std::vector<Slot> all_pairs(int members);

struct PairOptions {
  bool matrix = false;        ///< measure all pairs, not two rounds
  double tolerance = 0.2;     ///< how far below expectation, or the better quarter, is still good
  double latency_factor = 3;  ///< above so many times that (and 50 us more) is bad
  int repeats = 2;            ///< of suspects, which tells a slow link from one that comes and goes
  std::optional<double> expected_gb_s, expected_latency_us;
};

struct PairReport {
  std::vector<std::string> members;  ///< host names
  std::vector<std::string> rails;    ///< interface names
  std::vector<PairMeasure> measures;
  int slots = 0;    ///< of the rounds, measured one after another, over all rails
  int repeats = 0;  ///< slots of suspects after them
  std::vector<health::Finding> findings;
};

/// Runs the rounds on every rail and judges.
PairReport run_pairs(const std::vector<std::string>& members, const std::vector<std::string>& rails,
                     const PairOptions& options, const MeasureSlot& measure);

/// A member that is slow or cut off with every partner is F06 (F07 if cut off on all rails), by
/// rail if its other rails are good; a pair whose members are good with others is F06 as a link. A
/// rail whose interface lost its link meanwhile, and a pair that is cut (or slow with lost packets)
/// in one measurement and not in another, is F10: it comes and goes. Slow once and never again is a
/// warning. Findings name their members in `hosts`.
std::vector<health::Finding> judge_pairs(const PairReport& report, const PairOptions& options);

/// F10 for every member whose interface lost its link; `losses` by member.
std::vector<health::Finding> judge_losses(const std::vector<std::string>& members,
                                          const std::string& rail,
                                          const std::vector<int64_t>& losses);

std::string pairs_text(const PairReport& report);
Json pairs_json(const PairReport& report);
/// One file without outside references: a heat map a rail, figures as text in every cell.
std::string pairs_html(const PairReport& report);

/// Measurements of a file {"members": [...], "rails": [...], "pairs": [{"a", "b", "rail", "gb_s",
/// "latency_us"} or {..., "error"}]}, to judge them again; "stall_ms", "retransmits", "losses": [a,
/// b] and "again": [...] may be there. Throws DataError naming the file.
PairReport read_pairs(const std::string& file);
PairReport pairs_from_json(const Json& json, const std::string& origin);
/// Answers from those, repeats included; a pair that the file lacks is an error "not measured".
MeasureSlot replay(const PairReport& recorded);

}  // namespace mm::probe
