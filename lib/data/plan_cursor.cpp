#include "lib/data/plan_cursor.h"

#include <utility>

#include "lib/base/error.h"

namespace mm::data {

PlanCursor::PlanCursor(std::vector<SampleSize> sizes, const PlanOptions& options)
    : sizes_(std::move(sizes)), options_(options) {
  if (sizes_.empty()) throw DataError("the data set has no samples, so there is nothing to plan");
  load_epoch(0, 0);
}

void PlanCursor::load_epoch(uint64_t epoch, uint64_t first_step) {
  plan_ = plan_epoch(sizes_, options_, epoch);
  epoch_ = epoch;
  first_step_ = first_step;
}

PlannedStep PlanCursor::at(uint64_t global_step) {
  if (global_step < first_step_) load_epoch(0, 0);
  while (global_step - first_step_ >= plan_.steps.size()) {
    load_epoch(epoch_ + 1, first_step_ + plan_.steps.size());
  }
  PlannedStep step;
  step.global_step = global_step;
  step.position = {epoch_, global_step - first_step_};
  step.packs = plan_.steps[step.position.step_in_epoch];
  for (const Pack& pack : step.packs) {
    step.tokens += pack.tokens;
    step.images += pack.images;
    step.targets += pack.targets;
  }
  return step;
}

}  // namespace mm::data
