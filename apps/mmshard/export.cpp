#include <fmt/format.h>

#include <memory>

#include "apps/mmshard/verbs.h"
#include "lib/base/exit_code.h"
#include "lib/base/json.h"
#include "lib/base/progress.h"
#include "lib/data/export_dataset.h"

namespace mmshard {
namespace {

using namespace mm::data;

constexpr const char* kExamples =
    R"(Pictures come as stored (JPEG byte for byte, raw pixels as PNG), text as its tokens decode.

Examples:
  mmshard export sets/photos --to webdataset --out tars/
  mmshard export sets/photos --to folder --out photos-again/)";

struct Flags {
  std::filesystem::path directory;
  ExportOptions options;
  std::string kind;
  double tar_mib = 1024;
  bool json = false, quiet = false;
};

int run_export(Flags& flags) {
  const auto set = Dataset::open(flags.directory);
  const auto tokenizer =
      mm::text::load_tokenizer(flags.directory / set->manifest().tokenizer.file.file);
  flags.options.kind = *export_kind_from_name(flags.kind);
  flags.options.tar_bytes = static_cast<uint64_t>(flags.tar_mib * (1 << 20));
  mm::Progress progress({.label = "export", .unit = "samples", .quiet = flags.quiet});
  flags.options.on_samples = [&](int64_t samples) { progress.add(samples); };
  const ExportResult result = export_dataset(*set, *tokenizer, flags.options);
  progress.finish();
  const std::string out = flags.options.output.string();
  if (flags.json) {
    const mm::Json json = {{"schema", 1},
                           {"out", out},
                           {"samples", result.samples},
                           {"pictures", result.pictures},
                           {"files", result.files}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}: {} samples, {} pictures, {} files\n", out, result.samples, result.pictures,
               result.files);
  }
  return static_cast<int>(mm::ExitCode::kDone);
}

}  // namespace

void add_export(CLI::App& app, Body& body) {
  auto* verb = app.add_subcommand("export", "Write a data set as WebDataset tars or a folder");
  auto flags = std::make_shared<Flags>();
  verb->add_option("dataset", flags->directory, "Packed data set")->required();
  verb->add_option("--to", flags->kind, "What to write")
      ->required()
      ->check(CLI::IsMember({"webdataset", "folder"}));
  verb->add_option("--out", flags->options.output, "Directory to make; must not exist")->required();
  verb->add_option("--tar-size", flags->tar_mib, "WebDataset: MiB of a tar, about")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print one JSON object instead of text");
  verb->add_flag("--quiet", flags->quiet, "No progress on stderr");
  verb->footer(kExamples);
  verb->callback([flags, &body] { body = [flags] { return run_export(*flags); }; });
}

}  // namespace mmshard
