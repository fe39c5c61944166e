#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/mmshard/verbs.h"
#include "lib/base/error.h"
#include "lib/base/exit_code.h"
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
  mmshard plan --lengths lengths.csv.gz --sequence-length 4096 --max-images 15 --slots 64)";

struct Flags {
  std::filesystem::path directory, lengths, out;
  PlanOptions plan;
  uint64_t epoch = 0;
  int ranks = 1;
  std::string packing = "tight", oversize = "refuse";
  bool json = false;
};

std::vector<SampleSize> read_sizes(const Flags& flags) {
  if (flags.lengths.empty() == flags.directory.empty()) {
    throw mm::UsageError(
        "give either a packed data set or --lengths FILE; see `mmshard plan --help`");
  }
  if (!flags.lengths.empty()) return read_lengths(flags.lengths).sizes;
  return Dataset::open(flags.directory)->sizes();
}

int run_plan(Flags& flags) {
  std::vector<SampleSize> sizes = read_sizes(flags);
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
  verb.add_option("dataset", flags.directory, "Packed data set");
  verb.add_option("--lengths", flags.lengths,
                  "CSV table of lengths (.gz too) in place of a data set: columns tokens, images, "
                  "targets by header");
  verb.add_option("--out", flags.out, "Write the plan to this file, for `mmshard pack --for`");
  verb.add_flag("--json", flags.json, "Print one JSON object instead of text");
}

void add_pack_flags(CLI::App& verb, Flags& flags) {
  verb.add_option("--sequence-length", flags.plan.sequence_length, "Tokens of a pack at most")
      ->required()
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
  verb.add_option("--ranks,--slots", flags.ranks, "Data ranks that the report assumes")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
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
  verb->footer(kExamples);
  verb->callback([flags, &body] { body = [flags] { return run_plan(*flags); }; });
}

}  // namespace mmshard
