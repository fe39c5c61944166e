#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/mmshard/plan_buckets.h"
#include "apps/mmshard/verbs.h"
#include "lib/base/error.h"
#include "lib/base/exit_code.h"
#include "lib/data/bucket_options.h"
#include "lib/data/dataset.h"
#include "lib/data/length_table.h"
#include "lib/data/plan_file.h"
#include "lib/data/plan_report.h"

namespace mmshard {
namespace {

using namespace mm::data;

constexpr const char* kExamples =
    R"(No sample is read: the index, or a table of lengths, is enough.

Examples:
  mmshard plan sets/photos --sequence-length 2048 --packs-per-step 64 --ranks 8
  mmshard plan sets/photos --sequence-length 4096 --max-images 15 --packs-per-step 256 --ranks 64 --json
  mmshard plan --lengths lengths.csv.gz --sequence-length 4096 --max-images 15 --slots 64
  mmshard plan sets/buckets --batch-pixels 4x1024x1024
  mmshard plan --sizes sizes.csv.gz --buckets pixart-512,pixart-1024 --batch-pixels 4x1024x1024 --packs-per-step 256)";

struct Flags {
  PlanInput input;
  BucketFlags buckets;
  std::filesystem::path out;
  PlanOptions plan;
  uint64_t epoch = 0;
  int ranks = 0;
  std::string packing = "tight", oversize = "refuse";
  bool json = false;
};

/// What the command line names, read.
PlannedSet read_input(const Flags& flags) {
  const PlanInput& in = flags.input;
  PlannedSet read;
  if (!in.lengths.empty() + !in.directory.empty() + !in.sizes.empty() != 1) {
    throw mm::UsageError(
        "give either a packed data set or --lengths FILE or --sizes FILE; see `mmshard plan "
        "--help`");
  }
  if (!in.sizes.empty()) {
    const mm::image::BucketChooser chooser(buckets_of(flags.buckets.pictures));
    PictureTable table = read_picture_sizes(in.sizes, chooser);
    read.sizes = std::move(table.sizes);
    read.enlarged = table.enlarged;
  } else if (!in.lengths.empty()) {
    read.sizes = read_lengths(in.lengths).sizes;
  } else {
    read.set = Dataset::open(in.directory);
    read.sizes = read.set->sizes();
  }
  if (read.sizes.empty()) {
    const auto& from = !in.sizes.empty()     ? in.sizes
                       : !in.lengths.empty() ? in.lengths
                                             : in.directory;
    throw mm::DataError("{}: no samples in it; there is nothing to plan", from.string());
  }
  return read;
}

int run_plan(Flags& flags) {
  PlannedSet read = read_input(flags);
  std::vector<SampleSize>& sizes = read.sizes;
  if (!sizes.empty() && !sizes.front().bucket.empty()) {
    return plan_buckets(read, flags.buckets,
                        {.plan = flags.plan, .epoch = flags.epoch, .ranks = flags.ranks},
                        {.out = flags.out, .json = flags.json});
  }
  if (flags.plan.sequence_length <= 0)
    throw mm::UsageError("--sequence-length is required, but for bucketed sets");
  flags.ranks = std::max(1, flags.ranks);
  flags.plan.packing = *packing_from_name(flags.packing);
  if (flags.oversize == "cut")
    cut_lengths(sizes, flags.plan.sequence_length);
  else
    flags.plan.oversize = *oversize_from_name(flags.oversize);
  if (flags.plan.packs_per_step == 0) flags.plan.packs_per_step = flags.ranks;
  const PlanReport report = report_plan(sizes, flags.plan, flags.epoch, flags.ranks);
  if (!flags.out.empty()) {
    write_plan(flags.out, plan_epoch_table(sizes, flags.plan, flags.epoch).view(),
               identity_of(sizes, flags.plan, flags.epoch));
  }
  if (flags.json) {
    fmt::print("{}\n", to_json(report).dump(2));
  } else {
    fmt::print("{}", to_text(report, flags.plan));
    if (!flags.out.empty()) fmt::print("written to {}\n", flags.out.string());
  }
  return static_cast<int>(mm::ExitCode::kDone);
}

void add_source_flags(CLI::App& verb, Flags& flags) {
  verb.add_option("dataset", flags.input.directory, "Packed data set");
  verb.add_option("--lengths", flags.input.lengths,
                  "CSV table of lengths (.gz too) in place of a data set: columns tokens, images, "
                  "targets by header");
  verb.add_option("--sizes", flags.input.sizes,
                  "CSV table of picture sizes (.gz too) in place of a bucketed set: columns width, "
                  "height by header; with --buckets or --bucket-area");
  verb.add_option("--out", flags.out, "Write the plan to this file, for `mmshard pack --for`");
  verb.add_flag("--json", flags.json, "Print one JSON object instead of text");
}

void add_pack_flags(CLI::App& verb, Flags& flags) {
  verb.add_option("--sequence-length", flags.plan.sequence_length,
                  "Tokens of a pack at most; required but for bucketed sets")
      ->check(CLI::PositiveNumber);
  verb.add_option("--max-images", flags.plan.max_images, "Pictures of a pack at most; 0: any")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb.add_option("--max-attention-pairs", flags.plan.max_attention_pairs,
                  "Sum of s * (s + 1) / 2 over a pack's samples at most; 0: any")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb.add_option("--packing", flags.packing,
                  "tight: the best of greedy, best_fit, exact, search; shuffled: random packs; "
                  "none: one sample a pack")
      ->check(CLI::IsMember(packing_names()))
      ->capture_default_str();
  verb.add_option("--oversize", flags.oversize,
                  "Samples that no pack holds: refuse the plan, drop them, or cut their length (as "
                  "packing with that --max-length would)")
      ->check(CLI::IsMember({"refuse", "drop", "cut"}))
      ->capture_default_str();
}

void add_step_flags(CLI::App& verb, Flags& flags) {
  flags.plan.packs_per_step = 0;
  verb.add_option("--packs-per-step", flags.plan.packs_per_step,
                  "Global batch, in packs; 0: one a slot")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb.add_option("--ranks,--slots", flags.ranks,
                  "Data ranks that the report assumes [1; buckets: 1, 2, 4 ... 1024]")
      ->check(CLI::Range(1, 1 << 20));
  verb.add_option("--image-cost", flags.plan.image_cost,
                  "Work of one picture's encoder, in tokens of the language model")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb.add_option("--seed", flags.plan.seed, "Seed of the order")->capture_default_str();
  verb.add_option("--epoch", flags.epoch, "Which epoch, from 0")->capture_default_str();
}

}  // namespace

void add_plan(CLI::App& app, Body& body) {
  auto* verb = app.add_subcommand(
      "plan", "Show padding and balance of an epoch, for any length and rank count");
  auto flags = std::make_shared<Flags>();
  add_source_flags(*verb, *flags);
  add_pack_flags(*verb, *flags);
  add_step_flags(*verb, *flags);
  add_bucket_flags(*verb, flags->buckets);
  verb->footer(kExamples);
  verb->callback([flags, &body] { body = [flags] { return run_plan(*flags); }; });
}

}  // namespace mmshard
