#include "lib/data/plan_cursor.h"

#include <utility>

#include "lib/base/error.h"

namespace mm::data {
namespace {

void add_totals(PlannedStep& step) {
  for (const Pack& pack : step.packs) {
    step.tokens += pack.tokens;
    step.images += pack.images;
    step.targets += pack.targets;
  }
}

}  // namespace

PlanCursor::PlanCursor(std::vector<SampleSize> sizes, const PlanOptions& options,
                       std::filesystem::path plan_directory)
    : sizes_(std::move(sizes)),
      planner_(sizes_, options),
      plan_directory_(std::move(plan_directory)) {
  if (sizes_.empty()) throw DataError("the data set has no samples, so there is nothing to plan");
  load_epoch(0, 0);
  if (steps_.view().steps() == 0) {
    throw DataError("none of the {} samples fits a pack of {} tokens, so there is nothing to plan",
                    sizes_.size(), options.sequence_length);
  }
}

void PlanCursor::load_epoch(uint64_t epoch, uint64_t first_step) {
  steps_ = EpochSteps(planner_, epoch, plan_directory_);
  epoch_ = epoch;
  first_step_ = first_step;
}

PlannedStep PlanCursor::at(uint64_t global_step) {
  if (global_step < first_step_) load_epoch(0, 0);
  while (global_step - first_step_ >= steps_in_epoch()) {
    load_epoch(epoch_ + 1, first_step_ + steps_in_epoch());
  }
  PlannedStep step{.global_step = global_step, .position = {epoch_, global_step - first_step_}};
  step.packs = packs_of_step(sizes_, steps_.view(), step.position.step_in_epoch,
                             planner_.options().image_cost);
  add_totals(step);
  return step;
}

PlannedStep PlanCursor::costliest() const {
  const double image_cost = planner_.options().image_cost;
  const auto pack = costliest_pack(sizes_, steps_.view(), image_cost);
  PlannedStep step{.global_step = first_step_, .position = {epoch_, 0}};
  step.packs.push_back(planned_pack(sizes_, steps_.view(), *pack, image_cost));
  add_totals(step);
  return step;
}

}  // namespace mm::data
