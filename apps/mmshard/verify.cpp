#include <fmt/format.h>

#include <memory>

#include "apps/mmshard/verbs.h"
#include "apps/mmtrain/engine_loader.h"
#include "lib/base/exit_code.h"
#include "lib/data/verify_dataset.h"

namespace mmshard {
namespace {

using namespace mm::data;

constexpr const char* kExamples =
    R"(Exit code 0: sound; 65: something is damaged, each problem has a line.

Examples:
  mmshard verify sets/photos
  mmshard verify sets/photos --threads 4 --json
  mmshard verify sets/photos-latents)";

struct Flags {
  std::filesystem::path directory;
  int threads = 0;
  bool json = false;
};

/// Whether mmshard encode made it.
bool is_encoded(const std::filesystem::path& directory) {
  const std::filesystem::path manifest = directory / "manifest.json";
  if (!std::filesystem::exists(manifest)) return false;
  const mm::Json json = mm::read_json_file(manifest);
  return json.is_object() && json.value("format", mm::Json()) == "mmkit-encoded";
}

int run_verify(const Flags& flags) {
  if (is_encoded(flags.directory))
    return mm::mmtrain::call_engine(
        "verify",
        {{"dataset", flags.directory.string()}, {"threads", flags.threads}, {"json", flags.json}});
  const VerifyReport report = verify_dataset(flags.directory, flags.threads);
  if (flags.json)
    fmt::print("{}\n", to_json(report).dump(2));
  else
    fmt::print("{}", to_text(report, flags.directory));
  return static_cast<int>(report.exit_code());
}

}  // namespace

void add_verify(CLI::App& app, Body& body) {
  auto* verb = app.add_subcommand("verify",
                                  "Read every byte of a data set, packed or encoded, and check it");
  auto flags = std::make_shared<Flags>();
  verb->add_option("dataset", flags->directory, "Packed data set, or what encode made of one")
      ->required();
  verb->add_option("--threads", flags->threads, "Threads; 0: all cores")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print one JSON object instead of text");
  verb->footer(kExamples);
  verb->callback([flags, &body] { body = [flags] { return run_verify(*flags); }; });
}

}  // namespace mmshard
