#pragma once
#include <memory>
#include <optional>
#include <string>

#include "lib/base/json.h"
#include "lib/health/finding.h"
#include "lib/health/guarded_reader.h"
#include "lib/health/system_tree.h"

namespace mm::health {

/// One of the readers that a watch asks, with what was last said about it.
class WatchSource {
 public:
  /// `code`: of the fault that it is when it does not answer.
  WatchSource(const char* code, const char* name, std::function<std::string()> read)
      : code_(code), name_(name), reader_(std::move(read)) {}

  void ask() { reader_.ask(); }

  struct Taken {
    std::optional<Json> read;      ///< {"counters", "facts", "xids": [[bus id, number], ...]}
    std::optional<Finding> event;  ///< hangs, cannot be read, answers again
  };
  /// Waits at most `deadline_ms`, and not at all for one that hung before. `now_s` and `unix_ms`
  /// are the watch's clock.
  Taken take(int deadline_ms, double now_s, int64_t unix_ms);

 private:
  std::optional<Finding> hangs(double hung_s);
  std::optional<Finding> answers(double now_s);
  std::optional<Finding> fails(const std::string& problem);

  const char* code_;
  const char* name_;
  GuardedReader reader_;
  std::string problem_;            ///< of the last answer; empty: good
  std::optional<double> hung_at_;  ///< when it was asked; nothing: it answers
  int64_t hung_at_unix_ms_ = 0;
  double tell_after_s_ = 0;  ///< how long it hangs when it is told again
};

std::unique_ptr<WatchSource> gpu_source(const std::string& nvml_library);
std::unique_ptr<WatchSource> infiniband_source(const SystemTree& tree);
std::unique_ptr<WatchSource> file_source(const SystemTree& tree);

}  // namespace mm::health
