// Prints one table; nothing is asserted by time. tools/peers/bench_tokenizers.py measures the
// tokenizers, sentencepiece and tiktoken wheels on the same files.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/text/tokenizer.h"

namespace {

struct Arguments {
  std::vector<std::string> tokenizers;
  std::string text;
  int rounds = 5;
};

// Processor time of this thread: what one core must spend, whatever else the machine does.
double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median_seconds(int rounds, const std::function<void()>& body) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const double begin = seconds_now();
    body();
    times.push_back(seconds_now() - begin);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<size_t>(rounds) / 2];
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

void print_row(const std::string& name, double megabytes, double tokens, double s) {
  fmt::print("{:<52} {:>10.2f} {:>14.0f}\n", name, megabytes / s, tokens / s);
}

void print_limits(const std::vector<std::string>& lines, double megabytes, int rounds) {
  std::string target;
  const double copy = median_seconds(rounds, [&] {
    target.clear();
    for (const std::string& line : lines) target += line;
  });
  size_t blanks = 0;
  const double scan = median_seconds(rounds, [&] {
    for (const std::string& line : lines) blanks += std::count(line.begin(), line.end(), ' ');
  });
  print_row("copy of the lines (the limit)", megabytes, 0, copy);
  print_row(fmt::format("scan for blanks ({} found)", blanks / static_cast<size_t>(rounds)),
            megabytes, 0, scan);
}

int run(int argc, char** argv) {
  Arguments a;
  CLI::App app("Tokens per second and core of tokenizer files, beside a copy of the text.");
  app.add_option("tokenizers", a.tokenizers, "tokenizer files of any kind")->required();
  app.add_option("--text", a.text, "UTF-8 file; each line is a text")->required();
  app.add_option("--rounds", a.rounds, "rounds of which the median counts")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (a.rounds < 1) throw mm::UsageError("bench_text: --rounds must be at least 1");
  const std::vector<std::string> lines = lines_of(mm::read_file(a.text));
  double megabytes = 0;
  for (const std::string& line : lines) megabytes += 1e-6 * static_cast<double>(line.size());
  fmt::print("{} lines, {:.2f} MB; processor time of 1 thread, medians of {} rounds\n\n",
             lines.size(), megabytes, a.rounds);
  fmt::print("{:<52} {:>10} {:>14}\n", "", "MB/s", "tokens/s");
  print_limits(lines, megabytes, a.rounds);
  for (const std::string& file : a.tokenizers) {
    const auto tokenizer = mm::text::load_tokenizer(file, {.extra_marks = {}});
    size_t tokens = 0;
    const double s = median_seconds(a.rounds, [&] {
      tokens = 0;
      for (const std::string& line : lines) tokens += tokenizer->encode_text(line).ids.size();
    });
    print_row(fmt::format("{} ({} tokens)", file, tokens), megabytes, static_cast<double>(tokens),
              s);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const mm::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return static_cast<int>(e.exit_code());
  }
}
