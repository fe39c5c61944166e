#include <fmt/format.h>

#include <memory>

#include "apps/mmshard/verbs.h"
#include "lib/base/exit_code.h"
#include "lib/data/dataset.h"
#include "lib/data/plan_report.h"

namespace mmshard {
namespace {

using namespace mm::data;

constexpr const char* kExamples = R"(No sample is read: the index is enough.

Examples:
  mmshard plan sets/photos --sequence-length 2048 --packs-per-step 64 --ranks 8
  mmshard plan sets/photos --sequence-length 4096 --max-images 15 --packs-per-step 256 --ranks 64 --json)";

struct Flags {
  std::filesystem::path directory;
  PlanOptions plan;
  uint64_t epoch = 0;
  int ranks = 1;
  std::string packing = "tight";
  bool json = false;
};

void print(const PlanReport& r, const PlanOptions& options) {
  const auto line = [](const char* what, const Imbalance& i) {
    fmt::print("  {:<10} {:8.4f} {:8.4f} {:8.4f}\n", what, i.mean, i.p99, i.worst);
  };
  fmt::print(
      "epoch {}: {} samples in {} packs of {} tokens ({:.2f} a pack), {} steps of {} packs, the "
      "last of {}\n",
      r.epoch, r.samples, r.packs, options.sequence_length, r.samples_per_pack, r.steps,
      options.packs_per_step, r.packs_in_last_step);
  fmt::print("padding {:.2f} % ({} packs at least)\n", 100 * r.padding, r.packs_lower_bound);
  fmt::print("{} ranks, {} micro-batches a rank; max / mean over ranks:\n", r.ranks,
             r.micro_batches_per_rank);
  fmt::print("  {:<10} {:>8} {:>8} {:>8}\n", "", "mean", "p99", "worst");
  line("tokens", r.rank_tokens);
  line("attention", r.rank_attention);
  line("images", r.rank_images);
  fmt::print("costliest step / mean step {:.4f}\n", r.step_cost_worst);
}

int run_plan(Flags& flags) {
  flags.plan.packing = *packing_from_name(flags.packing);
  const auto set = Dataset::open(flags.directory);
  const PlanReport report = report_plan(set->sizes(), flags.plan, flags.epoch, flags.ranks);
  if (flags.json) {
    fmt::print("{}\n", to_json(report).dump(2));
  } else {
    print(report, flags.plan);
  }
  return static_cast<int>(mm::ExitCode::kDone);
}

}  // namespace

void add_plan(CLI::App& app, Body& body) {
  auto* verb = app.add_subcommand(
      "plan", "Show padding and balance of an epoch, for any length and rank count");
  auto flags = std::make_shared<Flags>();
  verb->add_option("dataset", flags->directory, "Packed data set")->required();
  verb->add_option("--sequence-length", flags->plan.sequence_length, "Tokens of a pack at most")
      ->required()
      ->check(CLI::PositiveNumber);
  verb->add_option("--max-images", flags->plan.max_images, "Pictures of a pack at most; 0: any")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--packs-per-step", flags->plan.packs_per_step, "Global batch, in packs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--ranks", flags->ranks, "Data ranks")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--seed", flags->plan.seed, "Seed of the order")->capture_default_str();
  verb->add_option("--epoch", flags->epoch, "Which epoch, from 0")->capture_default_str();
  verb->add_option("--packing", flags->packing,
                   "tight: least padding; shuffled: random packs; none: one sample a pack")
      ->check(CLI::IsMember({"tight", "shuffled", "none"}))
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print one JSON object instead of text");
  verb->footer(kExamples);
  verb->callback([flags, &body] { body = [flags] { return run_plan(*flags); }; });
}

}  // namespace mmshard
