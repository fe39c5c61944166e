#include <fmt/format.h>

#include "lib/health/watch.h"

namespace mm::health {

std::string watch_lines(const WatchSample& sample) {
  std::string out;
  const std::string time = iso_time(sample.unix_ms);
  for (const StateChange& change : sample.states)
    out += fmt::format("{} {} {} -> {}\n", time, change.name, change.was.dump(), change.is.dump());
  for (const CounterChange& change : sample.counters)
    out += fmt::format("{} {} +{} ({:.4g}/s)\n", time, change.name, change.delta,
                       sample.seconds > 0 ? static_cast<double>(change.delta) / sample.seconds : 0);
  for (const Finding& finding : sample.events)
    out += fmt::format("{} {}\n", time, finding_line(finding));
  return out;
}

Json watch_json(const WatchSample& sample) {
  Json counters = Json::object(), states = Json::object(), events = Json::array();
  for (const CounterChange& change : sample.counters) counters[change.name] = change.delta;
  for (const StateChange& change : sample.states)
    states[change.name] = {{"was", change.was}, {"is", change.is}};
  for (const Finding& finding : sample.events) events.push_back(finding_json(finding));
  return {{"time", iso_time(sample.unix_ms)},
          {"seconds", sample.seconds},
          {"counters", counters},
          {"states", states},
          {"events", events}};
}

void PrometheusWatch::add(const WatchSample& sample) {
  for (const CounterChange& change : sample.counters) totals_[change.name] = change.total;
  for (const Finding& finding : sample.events) ++events_[finding.code];
}

std::string PrometheusWatch::text() const {
  std::string out = "# TYPE mmprobe_counter_total counter\n";
  for (const auto& [name, total] : totals_)
    out += fmt::format("mmprobe_counter_total{{name=\"{}\"}} {}\n", name, total);
  out += "# TYPE mmprobe_events_total counter\n";
  for (const auto& [code, count] : events_)
    out += fmt::format("mmprobe_events_total{{code=\"{}\"}} {}\n", code, count);
  return out;
}

}  // namespace mm::health
