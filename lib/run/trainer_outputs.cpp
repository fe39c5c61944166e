// What a trainer leaves in RUN beside checkpoints: grids, held-out losses, and which samples were
// bad or left out.
#include "lib/base/log.h"
#include "lib/image/encode.h"
#include "lib/run/dropped_ledger.h"
#include "lib/run/held_out_loss.h"
#include "lib/run/scheduled_grid.h"
#include "lib/run/step_setup.h"
#include "lib/run/trainer.h"

namespace mm::run {

namespace fs = std::filesystem;

void Trainer::draw_grid() {
  if (!grid_is_due(recipe_.sample, global_step_)) return;
  const optim::SavedParams params(*params_, average_.get());
  const std::optional<image::Image> grid = draw_scheduled_grid(recipe_, *family_, params, comm_);
  all_or_none(*comm_.control, [&] {
    if (!grid) return;
    const std::string png = image::encode_png(*grid);
    const fs::path directory = options_.run_directory / "samples";
    fs::create_directories(directory);
    write_file_atomic(directory / fmt::format("step-{:06}.png", global_step_), png);
    metrics_->grid({.width = grid->width, .height = grid->height, .file = png}, global_step_);
  });
}

void Trainer::note_bad_samples(const StageStep& done, size_t index) {
  for (const data::BadRead& bad : done.bad) {
    log::warn("data", "sample keeps its place with weight 0",
              {{"stage", recipe_.stages[index].name},
               {"step", global_step_},
               {"sample", bad.sample_id},
               {"key", bad.key},
               {"reason", bad.message}});
    File file =
        File::create(options_.run_directory / "ledger" / fmt::format("bad-{:05}.jsonl", comm_.rank),
                     /*append=*/true);
    file.write(Json{{"step", global_step_},
                    {"stage", recipe_.stages[index].name},
                    {"sample", bad.sample_id},
                    {"key", bad.key},
                    {"kind", bad.kind},
                    {"message", bad.message}}
                   .dump() +
               "\n");
  }
}

void Trainer::note_dropped(const StageStep& done, size_t index) {
  const StageRecipe& stage = recipe_.stages[index];
  if (stage.leftovers != "drop" || done.plan.position.step_in_epoch > 0) return;
  patiently([&] {
    if (comm_.rank != 0) return;
    write_dropped(options_.run_directory, {global_step_, stage.name, done.plan.position.epoch},
                  sets_[index]->sizes(), plan_options(recipe_, stage));
  });
}

void Trainer::measure_held_out(StepRecord& record) {
  const int64_t every = recipe_.validation.every_steps;
  if (every == 0 || global_step_ % every != 0) return;
  const optim::SavedParams params(*params_, average_.get());
  const std::optional<ValidationLoss> loss =
      run::measure_held_out(*family_->held_out(), params, comm_, recipe_.comm_timeout_s);
  if (!loss) return;
  record.validation_loss = loss->mean();
  record.validation_by_time = loss->by_time();
  log::info("run", "held-out loss",
            {{"step", global_step_}, {"loss", loss->mean()}, {"pictures", loss->samples}});
}

}  // namespace mm::run
