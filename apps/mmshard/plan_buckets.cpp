#include "apps/mmshard/plan_buckets.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/exit_code.h"
#include "lib/data/bucket_dropped.h"
#include "lib/data/bucket_options.h"
#include "lib/data/plan_file.h"

namespace mmshard {
namespace {

using namespace mm::data;

constexpr size_t kNamedDropped = 20;

std::string name_of_row(const PlannedSet& read, uint32_t row) {
  return read.set ? std::string(read.set->key(row)) : fmt::format("row {}", row);
}

std::string shape_text(BucketShape shape) {
  return fmt::format("{}x{}", shape.width, shape.height);
}

mm::Json dropped_json(const PlannedSet& read, const std::vector<DroppedPicture>& dropped) {
  mm::Json list = mm::Json::array();
  for (const DroppedPicture& d : dropped)
    list.push_back({{"row", d.row},
                    {"key", name_of_row(read, d.row)},
                    {"bucket", shape_text(d.bucket)},
                    {"reason", d.reason}});
  return list;
}

void print_dropped(const PlannedSet& read, const std::vector<DroppedPicture>& dropped) {
  for (size_t i = 0; i < std::min(dropped.size(), kNamedDropped); ++i)
    fmt::print("dropped {}, {}: {}\n", name_of_row(read, dropped[i].row),
               shape_text(dropped[i].bucket), dropped[i].reason);
  if (dropped.size() > kNamedDropped) fmt::print("and {} more\n", dropped.size() - kNamedDropped);
}

}  // namespace

void add_bucket_flags(CLI::App& verb, BucketFlags& flags) {
  const std::string group = "Buckets";
  verb.add_option("--batch-pixels", flags.batch_pixels,
                  "Pixels of a batch of one bucket at most, as 4194304 or 4x1024x1024")
      ->group(group);
  verb.add_option("--leftovers", flags.leftovers,
                  "Pictures that full steps have no room for: keep them in smaller batches with "
                  "fillers of weight 0, or drop them, named")
      ->check(CLI::IsMember({"keep", "drop"}))
      ->capture_default_str()
      ->group(group);
  verb.add_option("--buckets", flags.pictures.buckets,
                  "With --sizes: as `mmshard pack --geometry buckets` takes them")
      ->group(group);
  verb.add_option("--bucket-area", flags.pictures.bucket_area, "Likewise")->group(group);
  verb.add_option("--bucket-multiple", flags.pictures.bucket_multiple, "Likewise")
      ->capture_default_str()
      ->group(group);
  verb.add_option("--bucket-ratio", flags.pictures.bucket_ratio, "Likewise")
      ->capture_default_str()
      ->group(group);
}

int plan_buckets(const PlannedSet& read, const BucketFlags& flags, BucketReportOptions options,
                 const PlanOutput& output) {
  if (flags.batch_pixels.empty()) {
    throw mm::UsageError(
        "a bucketed set is planned by pixels; give --batch-pixels, such as 4x1024x1024");
  }
  PlanOptions& plan = options.plan;
  plan.packing = Packing::kBuckets;
  plan.batch_pixels = pixels_from_text(flags.batch_pixels);
  plan.leftovers = *leftovers_from_name(flags.leftovers);
  const BucketPlanReport report = report_bucket_plan(read.sizes, options);
  if (plan.packs_per_step <= 0) plan.packs_per_step = report.rows.back().batches_per_step;
  const PlanTable table = plan_epoch_table(read.sizes, plan, options.epoch);
  const auto dropped = dropped_pictures(read.sizes, table.view(), plan);
  if (!output.out.empty())
    write_plan(output.out, table.view(), identity_of(read.sizes, plan, options.epoch));
  if (output.json) {
    mm::Json json = to_json(report);
    json["enlarged"] = read.enlarged;
    json["dropped"] = dropped_json(read, dropped);
    fmt::print("{}\n", json.dump(2));
    return static_cast<int>(mm::ExitCode::kDone);
  }
  fmt::print("{}", to_text(report));
  if (!read.set) fmt::print("{} pictures would be enlarged\n", read.enlarged);
  print_dropped(read, dropped);
  if (!output.out.empty()) fmt::print("written to {}\n", output.out.string());
  return static_cast<int>(mm::ExitCode::kDone);
}

}  // namespace mmshard
