#include <fmt/format.h>

#include <iterator>

#include "lib/data/plan_report.h"

namespace mm::data {
namespace {

void add_packing(std::string& text, const PlanReport& r, const PlanOptions& options) {
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "epoch {}: {} samples in {} packs of {} tokens ({:.2f} a pack), {} steps of {} "
                 "packs, the last of {}\n",
                 r.epoch, r.samples, r.packs, options.sequence_length, r.samples_per_pack, r.steps,
                 options.packs_per_step, r.packs_in_last_step);
  fmt::format_to(
      out,
      "padding {:.2f} % by {} packing; no packing goes below {:.2f} % ({} packs, by {}): "
      "{:.2f} % more packs than that\n",
      100 * r.padding, name_of(r.packing), 100 * r.padding_lower_bound, r.packs_lower_bound,
      r.bound_proof, 100 * r.bound_gap);
  fmt::format_to(out, "{} dropped, {} repeated, {} pack lengths\n", r.dropped, r.repeated,
                 r.distinct_pack_lengths);
}

void add_balance(std::string& text, const PlanReport& r) {
  const auto out = std::back_inserter(text);
  const auto line = [&](const char* what, const Imbalance& i) {
    fmt::format_to(out, "  {:<10} {:8.4f} {:8.4f} {:8.4f}\n", what, i.mean, i.p99, i.worst);
  };
  fmt::format_to(out,
                 "{} ranks, {} micro-batches a rank, {} without a pack; max / mean over ranks:\n",
                 r.ranks, r.micro_batches_per_rank, r.empty_slots);
  fmt::format_to(out, "  {:<10} {:>8} {:>8} {:>8}\n", "", "mean", "p99", "worst");
  line("cost", r.rank_cost);
  line("tokens", r.rank_tokens);
  line("attention", r.rank_attention);
  line("images", r.rank_images);
}

}  // namespace

std::string to_text(const PlanReport& r, const PlanOptions& options) {
  std::string text;
  add_packing(text, r, options);
  add_balance(text, r);
  fmt::format_to(
      std::back_inserter(text),
      "costliest step / mean step {:.4f}; costliest pack {:.4f} of the mean: {} samples, "
      "{} tokens, {} images, in step {}\n"
      "shuffle quality {:.3f} (lengths within a step {:.3f}, distance from the index's "
      "order {:.3f}; 1 is a uniform shuffle)\n"
      "plan {}\n",
      r.step_cost_worst, r.costliest.cost_over_mean, r.costliest.samples, r.costliest.tokens,
      r.costliest.images, r.costliest.step, r.shuffle.figure(), r.shuffle.within_steps,
      r.shuffle.distance, r.plan_hash);
  return text;
}

Json to_json(const PlanReport& report) {
  Json json{{"schema", 1},
            {"epoch", report.epoch},
            {"ranks", report.ranks},
            {"packing", name_of(report.packing)},
            {"samples", report.samples},
            {"tokens", report.tokens},
            {"images", report.images},
            {"targets", report.targets},
            {"dropped", report.dropped},
            {"repeated", report.repeated},
            {"packs", report.packs},
            {"packs_lower_bound", report.packs_lower_bound},
            {"bound_proof", report.bound_proof},
            {"bound_gap", report.bound_gap},
            {"samples_per_pack", report.samples_per_pack},
            {"padding", report.padding},
            {"padding_lower_bound", report.padding_lower_bound},
            {"distinct_pack_lengths", report.distinct_pack_lengths}};
  json.update(
      {{"steps", report.steps},
       {"packs_in_last_step", report.packs_in_last_step},
       {"micro_batches_per_rank", report.micro_batches_per_rank},
       {"empty_slots", report.empty_slots},
       {"rank_cost", to_json(report.rank_cost)},
       {"rank_tokens", to_json(report.rank_tokens)},
       {"rank_attention", to_json(report.rank_attention)},
       {"rank_images", to_json(report.rank_images)},
       {"step_cost_worst", report.step_cost_worst},
       {"shuffle_quality", report.shuffle.figure()},
       {"shuffle",
        {{"within_steps", report.shuffle.within_steps}, {"distance", report.shuffle.distance}}},
       {"costliest_pack",
        {{"step", report.costliest.step},
         {"samples", report.costliest.samples},
         {"tokens", report.costliest.tokens},
         {"images", report.costliest.images},
         {"cost_over_mean", report.costliest.cost_over_mean}}},
       {"plan_hash", report.plan_hash},
       {"plan_seconds", report.plan_seconds}});
  return json;
}

}  // namespace mm::data
