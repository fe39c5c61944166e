#pragma once
#include <vector>

#include "lib/probe/pair_rounds.h"

namespace mm::probe {

enum class Grade { kGood, kSlow, kCut };

/// What one rail's measurements are held against.
struct Yardstick {
  double gb_s = 0, latency_us = 0;
  bool expected = false;  ///< told, not what the better quarter reaches
};
Yardstick yardstick(const std::vector<PairMeasure>& measures, const PairOptions& options, int rail);

/// One measurement by itself, without its repeats.
Grade grade(const PairMeasure& m, const Yardstick& y, const PairOptions& options);

/// A pause that only lost packets explain.
bool stalled(const PairMeasure& m);

/// A measurement together with its repeats.
enum class Course {
  kGood,
  kOnce,          ///< bad once, good since, and no packet was lost
  kBad,           ///< every time
  kComesAndGoes,  ///< cut, or slow with lost packets, at one time and not at another
};
Course course_of(const PairMeasure& m, const Yardstick& y, const PairOptions& options);

/// Measures the suspects of one rail again, `options.repeats` times, into their `again`; at most
/// eight pairs. Returns the slots that it took.
int repeat_suspects(std::vector<PairMeasure>& measures, const PairOptions& options, int rail,
                    const MeasureSlot& measure);

}  // namespace mm::probe
