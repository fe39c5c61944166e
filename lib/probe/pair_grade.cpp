#include "lib/probe/pair_grade.h"

#include <algorithm>

namespace mm::probe {
namespace {

// TCP waits at least 200 ms before it sends a lost segment again; shorter pauses are the machine's.
constexpr double kStallMs = 150;
constexpr size_t kMaxSuspects = 8;

// A bad member spoils two measurements and more, so the middle may be bad already: what the better
// quarter reaches is what links can do.
double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size()))];
}

// Suspects in slots in which nobody is twice.
std::vector<Slot> packed(const std::vector<PairMeasure*>& suspects) {
  std::vector<Slot> slots;
  for (const PairMeasure* m : suspects) {
    const auto free = std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) {
      return std::none_of(slot.begin(), slot.end(), [&](const Pair& p) {
        return p.a == m->pair.a || p.b == m->pair.b || p.a == m->pair.b || p.b == m->pair.a;
      });
    });
    if (free == slots.end()) {
      slots.push_back({m->pair});
    } else {
      free->push_back(m->pair);
    }
  }
  return slots;
}

}  // namespace

Yardstick yardstick(const std::vector<PairMeasure>& measures, const PairOptions& options,
                    int rail) {
  std::vector<double> rates, latencies;
  for (const PairMeasure& m : measures) {
    if (m.rail != rail || !m.error.empty()) continue;
    rates.push_back(m.gb_s);
    latencies.push_back(m.latency_us);
  }
  Yardstick y{quantile(rates, 0.75), quantile(latencies, 0.25), options.expected_gb_s.has_value()};
  if (options.expected_gb_s) y.gb_s = *options.expected_gb_s;
  if (options.expected_latency_us) y.latency_us = *options.expected_latency_us;
  return y;
}

Grade grade(const PairMeasure& m, const Yardstick& y, const PairOptions& options) {
  if (!m.error.empty()) return Grade::kCut;
  if (m.gb_s < (1 - options.tolerance) * y.gb_s) return Grade::kSlow;
  // Microseconds of noise are no fault of a link.
  if (m.latency_us > options.latency_factor * y.latency_us && m.latency_us > y.latency_us + 50)
    return Grade::kSlow;
  return Grade::kGood;
}

bool stalled(const PairMeasure& m) { return m.stall_ms >= kStallMs && m.retransmits > 0; }

Course course_of(const PairMeasure& m, const Yardstick& y, const PairOptions& options) {
  int good = 0, stalls = 0, slow = 0, cut = 0, lossy = 0;
  const auto count = [&](const PairMeasure& one) {
    const Grade g = grade(one, y, options);
    good += g == Grade::kGood && !stalled(one) ? 1 : 0;
    stalls += g == Grade::kGood && stalled(one) ? 1 : 0;
    slow += g == Grade::kSlow ? 1 : 0;
    cut += g == Grade::kCut ? 1 : 0;
    lossy += g == Grade::kSlow && stalled(one) ? 1 : 0;
  };
  count(m);
  for (const PairMeasure& one : m.again) count(one);
  if (stalls + slow + cut == 0) return Course::kGood;
  if (good == 0 && stalls == 0 && (slow == 0 || cut == 0)) return Course::kBad;
  if (cut > 0 || lossy > 0 || stalls > 1) return Course::kComesAndGoes;
  return Course::kOnce;
}

int repeat_suspects(std::vector<PairMeasure>& measures, const PairOptions& options, int rail,
                    const MeasureSlot& measure) {
  const Yardstick y = yardstick(measures, options, rail);
  std::vector<PairMeasure*> suspects;
  for (PairMeasure& m : measures) {
    if (course_of(m, y, options) != Course::kGood && suspects.size() < kMaxSuspects)
      suspects.push_back(&m);
  }
  int slots = 0;
  for (int time = 0; time < options.repeats; ++time) {
    for (const Slot& slot : packed(suspects)) {
      ++slots;
      for (PairMeasure& got : measure(slot, rail)) {
        const auto of = std::find_if(suspects.begin(), suspects.end(),
                                     [&](const PairMeasure* m) { return m->pair == got.pair; });
        if (of != suspects.end()) (*of)->again.push_back(std::move(got));
      }
    }
  }
  return slots;
}

}  // namespace mm::probe
