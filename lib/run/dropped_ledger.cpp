#include "lib/run/dropped_ledger.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/data/bucket_dropped.h"

namespace mm::run {

void write_dropped(const std::filesystem::path& run_directory, const DroppedEpoch& epoch,
                   std::span<const data::SampleSize> sizes, const data::PlanOptions& options) {
  const data::PlanTable plan = data::plan_epoch_table(sizes, options, epoch.epoch);
  std::map<std::pair<data::BucketShape, std::string>, std::vector<uint32_t>> rows;
  for (const data::DroppedPicture& picture : data::dropped_pictures(sizes, plan.view(), options))
    rows[{picture.bucket, picture.reason}].push_back(picture.row);
  if (rows.empty()) return;
  std::string lines;
  for (const auto& [why, samples] : rows) {
    const auto& [bucket, reason] = why;
    lines +=
        Json{{"step", epoch.step},   {"stage", epoch.stage},
             {"epoch", epoch.epoch}, {"bucket", fmt::format("{}x{}", bucket.width, bucket.height)},
             {"reason", reason},     {"samples", samples}}
            .dump() +
        "\n";
  }
  std::filesystem::create_directories(run_directory / "ledger");
  File file = File::create(run_directory / "ledger" / "dropped.jsonl", /*append=*/true);
  file.write(lines);
}

}  // namespace mm::run
