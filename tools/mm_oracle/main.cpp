#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "lib/base/error.h"
#include "tools/mm_oracle/kinds.h"

namespace {

int run(const std::filesystem::path& directory, bool as_json) {
  using namespace mm::oracle;
  if (!std::filesystem::is_directory(directory))
    throw mm::UsageError("{} is not a directory", directory.string());
  Folder folder(directory);
  const Kind& kind = kind_of(folder);
  const Report report = compare(kind, folder);
  const std::string name = directory.string();
  fmt::print("{}",
             as_json ? report.json(name, kind.name).dump(1) + "\n" : report.table(name, kind.name));
  return static_cast<int>(report.passed() ? mm::ExitCode::kDone : mm::ExitCode::kDiffers);
}

// A file that cannot be read is invalid data here, whatever the reason.
int exit_code(const mm::Error& error) {
  const auto code =
      error.exit_code() == mm::ExitCode::kStorage ? mm::ExitCode::kDataInvalid : error.exit_code();
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Compares this build's numbers with a folder of reference numbers.\n"
      "Exit status: 0 all within tolerance, 1 something differs or is unknown, 2 usage, 65 "
      "unreadable.\n"
      "Example: mm_oracle tests/oracles/llava\n         mm_oracle tests/oracles/llava --json");
  std::filesystem::path directory;
  bool as_json = false;
  app.add_option("DIR", directory,
                 "Folder with expected.json and, by kind, weights and io.safetensors")
      ->required();
  app.add_flag("--json", as_json, "One JSON object instead of the table");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(mm::ExitCode::kUsage);
  }
  at::globalContext().setFlushDenormal(true);
  try {
    return run(directory, as_json);
  } catch (const mm::Error& error) {
    fmt::print(stderr, "mm_oracle: {}\n", error.what());
    return exit_code(error);
  } catch (const c10::Error& error) {
    fmt::print(stderr, "mm_oracle: {}: {}\n", directory.string(), error.what_without_backtrace());
    return static_cast<int>(mm::ExitCode::kInternal);
  }
}
