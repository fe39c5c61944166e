#include <fmt/format.h>

#include <iterator>

#include "lib/data/bucket_report.h"

namespace mm::data {
namespace {

Json cost_json(const EpochCost& cost) {
  return {{"pixels", to_json(cost.pixels)},
          {"steps", cost.steps},
          {"repeated", cost.repeated},
          {"time", cost.time}};
}

Json row_json(const RankRow& row, bool compared) {
  Json json = {{"ranks", row.ranks},         {"batches_per_step", row.batches_per_step},
               {"fillers", row.fillers},     {"filler_share", row.filler_share},
               {"dropped", row.dropped},     {"seconds", row.seconds},
               {"plan", cost_json(row.plan)}};
  if (compared) {
    json["random_padded"] = cost_json(row.others.padded);
    json["random_buckets_per_rank"] = cost_json(row.others.sampled);
    json["one_square"] = cost_json(row.others.square);
  }
  return json;
}

bool is_compared(const BucketPlanReport& report) {
  return !report.rows.empty() && report.rows.front().others.padded.steps > 0;
}

void add_buckets(std::string& text, const BucketPlanReport& r) {
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "epoch {}: {} pictures in {} buckets, batches of up to {} pixels\n", r.epoch,
                 r.pictures, r.buckets.size(), r.batch_pixels);
  fmt::format_to(out, "  {:>11} {:>10} {:>7} {:>9} {:>6}\n", "bucket", "pictures", "a batch",
                 "batches", "rest");
  for (size_t b = 0; b < r.buckets.size(); ++b) {
    const auto [shape, pictures] = r.buckets[b];
    const auto batch = static_cast<uint64_t>(r.batch[b]);
    fmt::format_to(out, "  {:>11} {:>10} {:>7} {:>9} {:>6}\n",
                   fmt::format("{}x{}", shape.width, shape.height), pictures, batch,
                   pictures / batch, pictures % batch);
  }
  for (const uint64_t b : r.over_budget) {
    fmt::format_to(out, "one picture of {}x{} passes the budget\n", r.buckets[b].shape.width,
                   r.buckets[b].shape.height);
  }
}

void add_plan(std::string& text, const BucketPlanReport& r) {
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "the plan; pixels: max / mean over ranks; time: pixels a rank waits for, over its "
                 "share of the real ones\n");
  fmt::format_to(out, "  {:>5} {:>7} {:>8} {:>8} {:>8} {:>8} {:>7} {:>9} {:>8} {:>8} {:>8}\n",
                 "ranks", "batches", "steps", "mean", "p99", "worst", "time", "fillers", "share",
                 "repeated", "dropped");
  for (const RankRow& row : r.rows) {
    fmt::format_to(
        out,
        "  {:>5} {:>7} {:>8} {:>8.4f} {:>8.4f} {:>8.4f} {:>7.4f} {:>9} {:>6.2f} % {:>8} {:>8}\n",
        row.ranks, row.batches_per_step, row.plan.steps, row.plan.pixels.mean, row.plan.pixels.p99,
        row.plan.pixels.worst, row.plan.time, row.fillers, 100 * row.filler_share,
        row.plan.repeated, row.dropped);
  }
}

void add_others(std::string& text, const BucketPlanReport& r) {
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "other ways; batches of a fixed count\n");
  fmt::format_to(out, "  {:>5} | {:^43} | {:^43} | {:^10}\n", "", "random batches, padded",
                 "random buckets on each rank", "one square");
  fmt::format_to(out, "  {:>5} |", "ranks");
  for (int i = 0; i < 2; ++i)
    fmt::format_to(out, " {:>8} {:>8} {:>8} {:>7} {:>8} |", "mean", "p99", "worst", "time",
                   "repeated");
  fmt::format_to(out, " {:>10}\n", "time");
  for (const RankRow& row : r.rows) {
    fmt::format_to(out, "  {:>5} |", row.ranks);
    for (const EpochCost* cost : {&row.others.padded, &row.others.sampled}) {
      fmt::format_to(out, " {:>8.4f} {:>8.4f} {:>8.4f} {:>7.4f} {:>8} |", cost->pixels.mean,
                     cost->pixels.p99, cost->pixels.worst, cost->time, cost->repeated);
    }
    fmt::format_to(out, " {:>10.4f}\n", row.others.square.time);
  }
}

}  // namespace

std::string to_text(const BucketPlanReport& report) {
  std::string text;
  add_buckets(text, report);
  add_plan(text, report);
  if (is_compared(report)) add_others(text, report);
  fmt::format_to(std::back_inserter(text), "plan {}\n", report.plan_hash);
  return text;
}

Json to_json(const BucketPlanReport& report) {
  Json json = {{"schema", 1},
               {"packing", name_of(Packing::kBuckets)},
               {"epoch", report.epoch},
               {"pictures", report.pictures},
               {"batch_pixels", report.batch_pixels},
               {"plan_hash", report.plan_hash}};
  json["buckets"] = Json::array();
  for (size_t b = 0; b < report.buckets.size(); ++b) {
    const auto& [shape, pictures] = report.buckets[b];
    json["buckets"].push_back({{"width", shape.width},
                               {"height", shape.height},
                               {"pictures", pictures},
                               {"batch", report.batch[b]},
                               {"over_budget", shape.pixels() > report.batch_pixels}});
  }
  json["rows"] = Json::array();
  for (const RankRow& row : report.rows) json["rows"].push_back(row_json(row, is_compared(report)));
  return json;
}

}  // namespace mm::data
