#include "lib/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace mm {
namespace {

constexpr double kTerminalIntervalS = 0.2;
constexpr double kShortestSpanS = 1e-3;  // below it a rate says nothing

}  // namespace

Progress::Progress(Options options)
    : options_(std::move(options)),
      terminal_(options_.terminal.value_or(::isatty(::fileno(options_.out)) == 1)),
      start_s_(options_.clock->monotonic_s()),
      printed_s_(start_s_) {}

Progress::~Progress() {
  if (line_open_) std::fputc('\n', options_.out);
}

void Progress::add(int64_t count) {
  const std::scoped_lock lock(mutex_);
  done_ += count;
  if (options_.quiet || finished_) return;
  const double now_s = options_.clock->monotonic_s();
  const double interval_s = terminal_ ? kTerminalIntervalS : options_.plain_interval_s;
  if (now_s - printed_s_ >= interval_s) print(now_s, /*last=*/false);
}

void Progress::set_total(int64_t total) {
  const std::scoped_lock lock(mutex_);
  options_.total = total;
}

void Progress::finish() {
  const std::scoped_lock lock(mutex_);
  if (!options_.quiet && !finished_) print(options_.clock->monotonic_s(), /*last=*/true);
  finished_ = true;
}

std::string Progress::line(double now_s) const {
  const double span_s = now_s - start_s_;
  const double rate = span_s > kShortestSpanS ? static_cast<double>(done_) / span_s : 0;
  std::string text = fmt::format("{}: {}", options_.label, done_);
  if (options_.total > 0) text += fmt::format("/{}", options_.total);
  if (!options_.unit.empty()) text += " " + options_.unit;
  if (options_.total > 0) text += fmt::format(" {}%", done_ * 100 / options_.total);
  if (rate > 0) text += rate < 10 ? fmt::format(" {:.2f}/s", rate) : fmt::format(" {:.0f}/s", rate);
  const int64_t left = std::max<int64_t>(0, options_.total - done_);
  if (left > 0 && rate > 0) {
    return text + " " + duration_text(static_cast<double>(left) / rate) + " left";
  }
  return text + " in " + duration_text(span_s);
}

void Progress::print(double now_s, bool last) {
  printed_s_ = now_s;
  // Clearing after the text, not before it, does not flicker.
  if (terminal_) {
    fmt::print(options_.out, "\r{}\x1b[K{}", line(now_s), last ? "\n" : "");
  } else {
    fmt::print(options_.out, "{}\n", line(now_s));
  }
  line_open_ = terminal_ && !last;
  std::fflush(options_.out);
}

}  // namespace mm
