#pragma once
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

#include "lib/base/clock.h"

namespace mm {

/// Shows how far long work is: on a terminal one line that rewrites itself, elsewhere a plain line
/// every `plain_interval_s`, nothing with `quiet`. "pack: 1200/9600 samples 12% 345/s 0:24 left".
/// Thread-safe; a call that prints nothing is cheap.
class Progress {
 public:
  struct Options {
    std::string label;  ///< "pack"
    std::string unit;   ///< "samples"
    int64_t total = 0;  ///< 0: not known
    bool quiet = false;
    double plain_interval_s = 30;
    std::FILE* out = stderr;
    std::optional<bool> terminal = std::nullopt;  ///< default: ask whether `out` is one
    const Clock* clock = &system_clock();
  };
  explicit Progress(Options options);
  /// Ends the rewritten line if finish() was not reached.
  ~Progress();
  Progress(const Progress&) = delete;

  void add(int64_t count);
  /// For work whose size is known only later.
  void set_total(int64_t total);
  /// Prints the last state and an end of line; later calls print nothing.
  void finish();

 private:
  std::string line(double now_s) const;
  void print(double now_s, bool last);

  Options options_;  ///< all but the total never change
  const bool terminal_;
  const double start_s_;
  std::mutex mutex_;
  int64_t done_ = 0;
  double printed_s_;
  bool line_open_ = false;
  bool finished_ = false;
};

}  // namespace mm
