#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/mmshard/verbs.h"
#include "lib/base/exit_code.h"
#include "lib/data/bucketing.h"
#include "lib/data/dataset_info.h"
#include "lib/data/duplicates.h"
#include "lib/text/chat_template.h"

namespace mmshard {
namespace {

using namespace mm::data;

constexpr const char* kExamples = R"(Examples:
  mmshard info sets/photos
  mmshard info sets/photos --json)";

struct Flags {
  std::filesystem::path directory;
  bool json = false;
};

void print_buckets(const DatasetManifest& m, const std::string& origin) {
  const Bucketing bucketing = bucketing_from_json(m.bucketing, origin);
  fmt::print(", by {} with {}, stored {}\nbuckets    {}\n", m.pictures.geometry, m.pictures.filter,
             m.pictures.storage, bucketing_line(bucketing));
  for (size_t i = 0; i < std::min(m.pictures.buckets.size(), bucketing.pictures.size()); ++i) {
    const BucketShape& shape = m.pictures.buckets[i];
    fmt::print("  {:>11} {:>10} pictures\n", fmt::format("{}x{}", shape.width, shape.height),
               bucketing.pictures[i]);
  }
}

/// Templates and labels stand for texts that are trained on; captions for what a text encoder gets.
void print_text(const DatasetManifest& m) {
  if (m.tokenizer.kind == "labels") {
    fmt::print("text       {} classes\n", m.tokenizer.vocab_size);
  } else if (!m.bucketing.is_null()) {
    fmt::print("text       captions without a template, at most {} tokens, {} of {} ids\n",
               m.max_length, m.tokenizer.kind, m.tokenizer.vocab_size);
  } else {
    fmt::print("text       template {}, at most {} tokens, {} of {} ids\n",
               mm::text::find_template(m.chat_template)
                   .value_or(mm::text::ChatTemplate{.name = m.chat_template})
                   .name,
               m.max_length, m.tokenizer.kind, m.tokenizer.vocab_size);
  }
}

void print(const DatasetInfo& info) {
  const DatasetManifest& m = info.manifest;
  const bool bucketed = !m.bucketing.is_null();
  fmt::print("{} ({})\n", info.directory, info.fingerprint);
  fmt::print("samples    {} ({} text only), {} bad, {} skipped\n", m.counts.samples,
             info.text_only_samples, m.counts.bad, m.counts.skipped);
  if (bucketed)
    fmt::print("tokens     {} of captions; per sample", m.counts.tokens);
  else
    fmt::print("tokens     {}, {} trained on; per sample", m.counts.tokens, m.counts.targets);
  for (size_t i = 0; i < kPercentiles.size(); ++i)
    fmt::print(" p{} {}", kPercentiles[i], info.token_percentiles[i]);
  fmt::print("\npictures   {}", m.counts.images);
  if (m.pictures.side > 0) {
    fmt::print(", {}x{} by {} with {}, stored {}, {} tokens each", m.pictures.side, m.pictures.side,
               m.pictures.geometry, m.pictures.filter, m.pictures.storage, m.pictures.patches);
  }
  if (bucketed)
    print_buckets(m, info.directory);
  else
    fmt::print("\n");
  print_text(m);
  fmt::print("shards     {}, {:.1f} MiB\n", m.shards.size(),
             static_cast<double>(info.shard_bytes) / (1 << 20));
  if (const auto line = duplicates_line(m.duplicates, info.directory); !line.empty())
    fmt::print("{}\n", line);
}

int run_info(const Flags& flags) {
  const DatasetInfo info = describe_dataset(*Dataset::open(flags.directory));
  if (flags.json) {
    fmt::print("{}\n", to_json(info).dump(2));
  } else {
    print(info);
  }
  return static_cast<int>(mm::ExitCode::kDone);
}

}  // namespace

void add_info(CLI::App& app, Body& body) {
  auto* verb = app.add_subcommand("info", "Say what a data set holds");
  auto flags = std::make_shared<Flags>();
  verb->add_option("dataset", flags->directory, "Packed data set")->required();
  verb->add_flag("--json", flags->json, "Print one JSON object instead of text");
  verb->footer(kExamples);
  verb->callback([flags, &body] { body = [flags] { return run_info(*flags); }; });
}

}  // namespace mmshard
