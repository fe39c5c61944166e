#include <fmt/format.h>

#include <memory>

#include "apps/mmshard/verbs.h"
#include "lib/base/exit_code.h"
#include "lib/data/verify_dataset.h"

namespace mmshard {
namespace {

using namespace mm::data;

constexpr const char* kExamples =
    R"(Exit code 0: sound; 65: something is damaged, each problem has a line.

Examples:
  mmshard verify sets/photos
  mmshard verify sets/photos --threads 4 --json)";

struct Flags {
  std::filesystem::path directory;
  int threads = 0;
  bool json = false;
};

int run_verify(const Flags& flags) {
  const VerifyReport report = verify_dataset(flags.directory, flags.threads);
  if (flags.json) {
    fmt::print("{}\n", to_json(report).dump(2));
  } else {
    for (const std::string& line : report.named) fmt::print("{}\n", line);
    if (report.problems > report.named.size())
      fmt::print("and {} more\n", report.problems - report.named.size());
    fmt::print("{}: {} files, {} bytes, {} samples: {}\n", flags.directory.string(), report.files,
               report.bytes, report.samples,
               report.sound() ? "sound" : fmt::format("{} problems", report.problems));
  }
  return static_cast<int>(report.sound() ? mm::ExitCode::kDone : mm::ExitCode::kDataInvalid);
}

}  // namespace

void add_verify(CLI::App& app, Body& body) {
  auto* verb = app.add_subcommand("verify", "Read every byte of a data set and check it");
  auto flags = std::make_shared<Flags>();
  verb->add_option("dataset", flags->directory, "Packed data set")->required();
  verb->add_option("--threads", flags->threads, "Threads; 0: all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print one JSON object instead of text");
  verb->footer(kExamples);
  verb->callback([flags, &body] { body = [flags] { return run_verify(*flags); }; });
}

}  // namespace mmshard
