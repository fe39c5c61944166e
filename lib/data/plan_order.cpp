#include "lib/data/plan_order.h"

#include "lib/data/plan_file.h"

namespace mm::data {

ShardOrder order_of_plan(const std::filesystem::path& plan, std::span<const UnitSample> samples) {
  const PlanFile file(plan);
  std::vector<SampleSize> sizes;
  sizes.reserve(samples.size());
  for (const UnitSample& sample : samples) sizes.push_back(sample.size);
  file.check_matches(sizes);
  const PlanView view = file.view();
  ShardOrder order;
  for (uint64_t pack = 0; pack < view.packs(); ++pack) {
    const auto rows = view.pack(pack);
    order.rows.insert(order.rows.end(), rows.begin(), rows.end());
    order.group_ends.push_back(order.rows.size());
  }
  for (const uint32_t row : view.dropped) {
    order.rows.push_back(row);
    order.group_ends.push_back(order.rows.size());
  }
  return order;
}

}  // namespace mm::data
