#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace mm::bench {

/// What several benches ask: an option with its default in the help and a range or list of values.
template <typename Number>
CLI::Option* add_number(CLI::App& app, const std::string& name, Number& value,
                        const std::string& meaning, Number low, Number high) {
  return app.add_option(name, value, meaning)->check(CLI::Range(low, high))->capture_default_str();
}
inline CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                               const std::string& meaning, const std::vector<std::string>& words) {
  return app.add_option(name, value, meaning)->check(CLI::IsMember(words))->capture_default_str();
}
inline void add_steps(CLI::App& app, int& steps) {
  add_number(app, "--steps", steps, "Steps measured; the median counts", 1, 1000);
}
inline void add_threads(CLI::App& app, int& threads) {
  add_number(app, "--threads", threads, "Compute threads", 1, 1024);
}
inline void add_dtype(CLI::App& app, std::string& dtype) {
  add_choice(app, "--dtype", dtype, "Compute dtype, fp32 or bf16", {"fp32", "bf16"});
}

struct BenchArguments {
  int count;
  char** words;  ///< of main
  const char* name;
  const char* about;  ///< what is measured, and an example
};

/// main() of a bench: `declare(app, options)`, then `run(options)`. What it throws becomes one line
/// and its exit code.
template <typename Options>
int bench_main(const BenchArguments& arguments, void (*declare)(CLI::App&, Options&),
               void (*run)(const Options&)) {
  CLI::App app(arguments.about);
  Options options;
  declare(app, options);
  CLI11_PARSE(app, arguments.count, arguments.words);
  try {
    run(options);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", arguments.name, error.what());
    return static_cast<int>(error.exit_code());
  }
}

}  // namespace mm::bench
