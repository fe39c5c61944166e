#include "lib/health/watch.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "apps/mmprobe/node_options.h"
#include "apps/mmprobe/verbs.h"
#include "lib/base/file.h"
#include "lib/base/signals.h"

namespace mm::mmprobe {
namespace {

struct Options {
  NodeFlags flags;
  std::string format = "lines", out;
  double interval_s = 1;
  int samples = 0;
};

void put(const Options& o, const health::WatchSample& sample, health::PrometheusWatch& totals) {
  if (o.format == "lines") {
    fmt::print("{}", watch_lines(sample));
  } else if (o.format == "jsonl") {
    if (sample.seconds > 0) fmt::print("{}\n", watch_json(sample).dump());
  } else {
    totals.add(sample);
    if (o.out.empty()) {
      fmt::print("{}\n", totals.text());
    } else {
      write_file_atomic(o.out, totals.text());
    }
  }
  std::fflush(stdout);
}

int run(const Options& o) {
  const StopSignals stop;
  health::Watcher watcher(resolve(o.flags));
  health::PrometheusWatch totals;
  auto next = std::chrono::steady_clock::now();
  // The first sample only remembers.
  for (int taken = 0; !stop.requested() && (o.samples == 0 || taken <= o.samples); ++taken) {
    put(o, watcher.sample(), totals);
    next += std::chrono::milliseconds(static_cast<int64_t>(1000 * o.interval_s));
    if (o.samples == 0 || taken < o.samples) std::this_thread::sleep_until(next);
  }
  return 0;
}

}  // namespace

void add_watch(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "watch", "Tells what changes: counters, states and events of ports, GPUs and memory.");
  auto o = std::make_shared<Options>();
  add_node_flags(verb, o->flags);
  const char* group = "Watch";
  verb->add_option("--interval", o->interval_s, "seconds between samples")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--samples", o->samples, "end after so many; 0: until SIGTERM or SIGINT")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--format", o->format, "lines, jsonl or prometheus")
      ->check(CLI::IsMember({"lines", "jsonl", "prometheus"}))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--out", o->out,
                   "prometheus: replace this file instead (node exporter's folder)")
      ->group(group);
  verb->footer(
      "Examples:\n"
      "  mmprobe watch\n"
      "  mmprobe watch --format prometheus --out /var/lib/node_exporter/mmprobe.prom\n"
      "Ends with 0 when it is stopped.");
  verb->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace mm::mmprobe
