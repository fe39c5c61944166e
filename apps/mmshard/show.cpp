#include <fmt/format.h>

#include <memory>

#include "apps/mmshard/verbs.h"
#include "lib/base/error.h"
#include "lib/base/exit_code.h"
#include "lib/base/file.h"
#include "lib/data/contact_sheet.h"

namespace mmshard {
namespace {

using namespace mm::data;

constexpr const char* kExamples = R"(Examples:
  mmshard show sets/photos --out photos.html
  mmshard show sets/photos --out three.html --samples 0 17 99)";

struct Flags {
  std::filesystem::path directory, out;
  uint64_t count = 24;
  std::vector<uint64_t> samples;
};

int run_show(const Flags& flags) {
  const auto set = Dataset::open(flags.directory);
  const auto tokenizer =
      mm::text::load_tokenizer(flags.directory / set->manifest().tokenizer.file.file);
  const auto rows = flags.samples.empty() ? spread_rows(set->rows(), flags.count) : flags.samples;
  for (const uint64_t row : rows) {
    if (row >= set->rows())
      throw mm::UsageError("sample {} is not there; the set has {}", row, set->rows());
  }
  mm::write_file_atomic(flags.out, contact_sheet(*set, *tokenizer, rows));
  fmt::print("{}: {} of {} samples\n", flags.out.string(), rows.size(), set->rows());
  return static_cast<int>(mm::ExitCode::kDone);
}

}  // namespace

void add_show(CLI::App& app, Body& body) {
  auto* verb = app.add_subcommand(
      "show", "Write an HTML page of samples: pictures, texts, which tokens are trained on");
  auto flags = std::make_shared<Flags>();
  verb->add_option("dataset", flags->directory, "Packed data set")->required();
  verb->add_option("--out", flags->out, "HTML file to write")->required();
  verb->add_option("--count", flags->count, "Samples, evenly spread from short to long")
      ->capture_default_str();
  verb->add_option("--samples", flags->samples, "Sample numbers, instead of --count");
  verb->footer(kExamples);
  verb->callback([flags, &body] { body = [flags] { return run_show(*flags); }; });
}

}  // namespace mmshard
