#pragma once
#include <cstdint>
#include <string>

namespace mm {

/// Where time comes from; pass a ManualClock in tests. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds since some fixed moment; never goes back.
  virtual double monotonic_s() const = 0;
  /// Milliseconds since 1970 UTC; may jump when somebody sets the clock.
  virtual int64_t unix_ms() const = 0;
};

/// The machine's clocks.
const Clock& system_clock();

/// Stands still until it is moved.
class ManualClock final : public Clock {
 public:
  double monotonic_s() const override { return now_s_; }
  int64_t unix_ms() const override { return static_cast<int64_t>(now_s_ * 1000); }
  void advance(double seconds) { now_s_ += seconds; }

 private:
  double now_s_ = 0;
};

/// "2026-01-31T12:00:00.123Z".
std::string iso_time(int64_t unix_ms);

/// "0:05", "12:34", "3:25:45", for people.
std::string duration_text(double seconds);

}  // namespace mm
