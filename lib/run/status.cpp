#include "lib/run/status.h"

#include <fmt/format.h>

#include <chrono>

#include "lib/base/clock.h"
#include "lib/base/run_dir.h"

namespace mm::run {

namespace fs = std::filesystem;

Json RunStatus::to_json() const {
  Json json{{"schema", 1},
            {"run_id", run_id},
            {"checkpoint", checkpoint},
            {"seconds_since_step", seconds_since_step}};
  json["last_step"] = last ? last->to_json() : Json();
  json["verdict"] = verdict ? Json{{"code", verdict->code},
                                   {"word", exit_word(verdict->code)},
                                   {"message", verdict->message}}
                            : Json();
  return json;
}

std::string RunStatus::text() const {
  std::string out = fmt::format("run {}\n", run_id);
  out += last ? last->line() + fmt::format("\n  {} ago", duration_text(seconds_since_step))
              : "no step yet";
  out += fmt::format("\nlast checkpoint: {}", checkpoint.empty() ? "none" : checkpoint);
  if (verdict)
    out += fmt::format("\nlast verdict: {} {} ({})", verdict->code, exit_word(verdict->code),
                       verdict->message);
  return out;
}

RunStatus read_status(const fs::path& run) {
  const RunDir directory = RunDir::open(run);
  RunStatus status{.run_id = directory.run_id(), .verdict = read_verdict(directory.verdict())};
  const std::vector<StepRecord> steps = read_metrics(run);
  if (!steps.empty()) {
    status.last = steps.back();
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(directory.metrics());
    status.seconds_since_step = std::chrono::duration<double>(age).count();
  }
  const fs::path latest = directory.checkpoint_dir() / "latest";
  if (fs::exists(latest)) {
    status.checkpoint = read_file(latest, 4096);
    while (status.checkpoint.ends_with('\n')) status.checkpoint.pop_back();
  }
  return status;
}

}  // namespace mm::run
