#include "lib/run/trainer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/model/flops.h"
#include "lib/run/data_access.h"
#include "lib/run/encoded_store.h"
#include "lib/run/gemm_rate.h"
#include "lib/run/memory_estimate.h"
#include "lib/run/model_setup.h"
#include "lib/run/patient_work.h"
#include "lib/run/run_snapshot.h"
#include "lib/run/start_weights.h"
#include "lib/run/step_setup.h"
#include "lib/state/save_state.h"

namespace mm::run {

namespace fs = std::filesystem;

Trainer::Trainer(const Recipe& recipe, Comm& comm, const TrainOptions& options)
    : recipe_(recipe), comm_(comm), options_(options) {
  patiently([&] {
    open_data();
    build();
  });
  std::vector<OpenedData> opened = opened_data(sets_);
  for (OpenedData& more : family_->opened()) opened.push_back(std::move(more));
  check_same_data(*comm_.control, opened);
  restore();
  patiently([&] { prepare_directory(); });
  measure_machine();
}

Trainer::~Trainer() = default;

void Trainer::patiently(const std::function<void()>& work) {
  // Well within the deadline of a collective.
  const std::chrono::duration<double> beat(std::min(1.0, recipe_.comm_timeout_s / 4));
  work_patiently(
      *comm_.control, [&](const std::stop_token&) { work(); }, beat);
}

void Trainer::open_data() {
  for (const StageRecipe& stage : recipe_.stages) {
    sets_.push_back(data::Dataset::open(stage.data));
    if (recipe_.loader_verify == "first") sets_.back()->verify_reads(data::VerifyReads::kFirst);
    if (auto tiers = cache_tiers(recipe_); !tiers.empty())
      sets_.back()->use_cache({.tiers = std::move(tiers)});
  }
  for (const auto& set : sets_) tallies_.emplace_back(*set);
}

void Trainer::build() {
  std::vector<data::DatasetManifest> manifests;
  for (const auto& set : sets_) manifests.push_back(set->manifest());
  family_ = make_family(recipe_, manifests);
  for (size_t i = 0; i < sets_.size(); ++i) stores_.push_back(family_->stage_store(i, *sets_[i]));
  model_ = std::make_unique<model::Model>(family_->build());
  check_memory();
  params_ = std::make_unique<optim::ParamStore>(*model_, run_precision(recipe_),
                                                trained_from(recipe_, *model_, 0));
}

void Trainer::check_memory() const {
  const std::optional<double> available = memory_available(comm_.local_world);
  if (recipe_.memory_check == "off" || !available) return;
  for (size_t i = 0; i < recipe_.stages.size(); ++i) {
    const StageMemory stage = stage_memory({recipe_, i, *model_, *family_, *sets_[i]});
    const std::string shortage =
        memory_shortage(stage.estimate, *available, recipe_.stages[i].name);
    if (shortage.empty()) continue;
    if (recipe_.memory_check == "refuse") throw UsageError("{}", shortage);
    if (comm_.rank == 0) log::warn("run", shortage);
  }
}

/// The contract of resuming: recipe keys that the state depends on, and the data sets'
/// fingerprints.
static Json data_fingerprints(const std::vector<std::unique_ptr<data::Dataset>>& sets) {
  Json json = Json::object();
  for (size_t i = 0; i < sets.size(); ++i)
    json[fmt::format("stage.{}.data", i)] = sets[i]->fingerprint();
  return json;
}

void Trainer::restore() {
  resumed_ = state::find_checkpoint(*comm_.control, options_.run_directory / "ckpt");
  all_or_none(*comm_.control, [&] {
    if (!resumed_) {
      if (options_.resume == Resume::kMust)
        throw UsageError("{}: no checkpoint to resume from (--resume must)",
                         options_.run_directory.string());
      start_weights();
      start_average();
      return;
    }
    if (options_.resume == Resume::kNever)
      throw UsageError("{}: holds {} already; choose another directory, or --resume auto",
                       options_.run_directory.string(), resumed_->directory.filename().string());
    const RunSnapshot snapshot =
        RunSnapshot::from_json(resumed_->manifest.state, resumed_->directory.string());
    Json saved = snapshot.contract,
         now = contract_known_to(snapshot.contract, resume_contract(recipe_));
    if (options_.allow_loss_change) saved = without_loss(saved), now = without_loss(now);
    std::string difference = contract_difference(saved, now);
    if (difference.find(".loss: ") != std::string::npos)
      difference += " (--allow-loss-change goes on with another loss)";
    if (difference.empty())
      difference = contract_difference(snapshot.data, data_fingerprints(sets_));
    if (!difference.empty())
      throw UsageError(
          "{}: cannot resume with this recipe: {}; use another --run, or init.from to start from "
          "its weights",
          options_.run_directory.string(), difference);
    state::load_tensors(*resumed_, weight_tensors(*params_));
    params_->refresh_compute(/*all=*/true);
    start_average();
    if (average_) {
      state::load_tensors(*resumed_, average_tensors(*model_, *average_));
      average_->set_count(snapshot.average_updates);
    }
    run_id_ = snapshot.run_id;
    save_id_ = resumed_->manifest.save_id;
    global_step_ = saved_step_ = snapshot.global_step;
    tokens_seen_ = snapshot.tokens_seen;
    bad_samples_ = snapshot.bad_samples;
  });
}

void Trainer::start_weights() {
  fill_start_weights(recipe_, *family_, *params_);
  params_->refresh_compute(/*all=*/true);
}

void Trainer::start_average() {
  if (!recipe_.ema.on()) return;
  average_ = std::make_unique<optim::Ema>(*params_, average_options(recipe_.ema),
                                          trained_from(recipe_, *model_, 0));
}

void Trainer::prepare_directory() {
  if (comm_.rank != 0) return;
  family_->check_directory(options_.run_directory);
  const RunDir directory = RunDir::create(options_.run_directory);
  run_id_ = directory.run_id();
  write_file_atomic(directory.recipe(), recipe_.resolved);
  SampleLedger::cut(directory.path(), global_step_);
  metrics_ = std::make_unique<MetricsWriter>(directory.path(), global_step_, recipe_.metrics);
  // What a caption needs: the tokenizer and how pictures were prepared, from the last set that has
  // pictures.
  const data::Dataset* set = sets_.back().get();
  for (const auto& candidate : sets_) {
    if (candidate->manifest().counts.images > 0) set = candidate.get();
  }
  const std::string& tokenizer = set->manifest().tokenizer.file.file;
  write_file_atomic(directory.path() / tokenizer, read_file(set->directory() / tokenizer));
  write_file_atomic(directory.path() / "data.json", data::to_json(set->manifest()).dump(2) + "\n");
  family_->write_side_files(directory.path(), set->manifest());
}

void Trainer::remark() const {
  if (comm_.rank != 0) return;
  std::vector<const data::SampleStore*> sets;
  for (const auto& set : sets_) sets.push_back(set.get());
  for (const std::string& line : family_->remarks(sets)) log::warn("run", line);
}

void Trainer::measure_machine() {
  remark();
  comm_.control->barrier();  // all ranks measure at once, as they will train
  const double mine =
      measure_gemm_rate(params_->precision().compute_of(model_->blocks.back().part), 512, 0.2);
  const at::Tensor sum = at::full({1}, mine, at::kDouble);
  comm_.control->all_reduce_sum(sum);
  gemm_flops_ = sum.item<double>();
  ledger_ = std::make_unique<SampleLedger>(options_.run_directory, comm_.rank);
}

std::unique_ptr<StageRun> Trainer::start_stage(size_t index, int64_t stage_step) {
  std::unique_ptr<StageRun> stage;
  patiently([&] { family_->load_frozen(index); });
  const data::SampleStore& store = stores_[index] ? *stores_[index] : *sets_[index];
  all_or_none(*comm_.control, [&] {
    params_->set_trainable(std::vector<bool>(model_->params.size(), false));
    params_->keep_masters(trained_from(recipe_, *model_, index));
    stage = std::make_unique<StageRun>(
        StageInputs{recipe_, index, *family_, *params_, store, comm_, stage_step, average_.get()});
    if (stage_step == 0 || !resumed_) return;
    state::load_tensors(*resumed_, stage->moments());
    const RunSnapshot snapshot =
        RunSnapshot::from_json(resumed_->manifest.state, resumed_->directory.string());
    stage->optimizer().set_update_count(snapshot.update_count);
    if (stage->loss_scaler()) stage->loss_scaler()->set_state(snapshot.loss_scale);
  });
  if (recipe_.costliest_first) stage->rehearse();
  if (comm_.rank == 0) {
    log::info("run", stage_step == 0 ? "stage begins" : "stage goes on",
              {{"stage", recipe_.stages[index].name},
               {"global_step", global_step_},
               {"stage_step", stage_step},
               {"samples", sets_[index]->rows()},
               {"ranks", comm_.world}});
  }
  return stage;
}

ExitCode Trainer::run() {
  auto [index, stage_step] = recipe_.locate(global_step_);
  // The grid of a step after which the run was stopped.
  if (global_step_ > 0 && index < recipe_.stages.size()) draw_grid();
  for (; index < recipe_.stages.size(); ++index, stage_step = 0) {
    const std::unique_ptr<StageRun> stage = start_stage(index, stage_step);
    while (!stage->done()) {
      const bool stop = step(*stage, index);
      const int64_t every = recipe_.checkpoint_every;
      const bool due = every > 0 && global_step_ % every == 0;
      if (stop || due || stage->done()) save(*stage, index);
      if (!stop || global_step_ >= recipe_.total_steps()) draw_grid();
      if (stop && global_step_ < recipe_.total_steps()) return ExitCode::kSavedRunAgain;
    }
  }
  return ExitCode::kDone;
}

bool Trainer::step(StageRun& stage, size_t index) {
  const auto start = std::chrono::steady_clock::now();
  if (options_.fault_hook) options_.fault_hook("step");
  stage.activations().watch(recipe_.metrics.activations_due(global_step_ + 1));
  const StageStep done = stage.run_step(global_step_ + 1);
  ++global_step_;
  tokens_seen_ += done.plan.tokens;
  bad_samples_ += std::ranges::count_if(
      done.bad, [](const data::BadRead& bad) { return bad.kind != EncodedStore::kAbsent; });
  note_bad_samples(done, index);
  ledger_->record(global_step_, recipe_.stages[index].name, done.plan.position.epoch, done.samples);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  note_dropped(done, index);
  const bool wanted =
      (options_.stop_requested && options_.stop_requested()) || global_step_ == options_.stop_after;
  const std::vector<RankPulse> pulses =
      exchange(*comm_.control, {.data_wait_ms = done.wait_ms,
                                .exposed_comm_ms = done.report.exposed_comm_ms,
                                .step_ms = 1e3 * seconds,
                                .memory_gib = peak_memory_gib(),
                                .stop = wanted ? 1.0 : 0.0,
                                .cores = devices_.cores(),
                                .patch_rows = static_cast<double>(done.pictures.patch_rows),
                                .picture_pairs = done.pictures.picture_pairs,
                                .window_pairs = done.pictures.window_pairs,
                                .bad_samples = static_cast<double>(bad_samples_)});
  double bad = 0, stop = 0;
  for (const RankPulse& pulse : pulses) bad += pulse.bad_samples, stop += pulse.stop;
  if (bad > recipe_.bad_sample_limit * static_cast<double>(sets_[index]->rows())) {
    throw DataError(
        "{}: {:.0f} samples could not be read, more than loader.bad_sample_limit = {} of {}; see "
        "{}",
        sets_[index]->directory().string(), bad, recipe_.bad_sample_limit, sets_[index]->rows(),
        (options_.run_directory / "ledger").string());
  }
  StepRecord record = record_of(done, index, seconds, pulses);
  add_gathered(record, done, index);
  if (recipe_.metrics.activations_due(global_step_))
    record.activations = stage.activations().moments(*comm_.control);
  if (stop == 0 || global_step_ >= recipe_.total_steps()) measure_held_out(record);
  if (comm_.rank == 0) {
    metrics_->write(record);
    if (global_step_ % recipe_.log_every == 0 || stage.done()) log::info("run", record.line());
    if (options_.keep_records) records_.push_back(record);
  }
  return stop > 0;
}

StepRecord Trainer::record_of(const StageStep& done, size_t index, double seconds,
                              const std::vector<RankPulse>& pulses) const {
  StepRecord record{.step = global_step_,
                    .stage = recipe_.stages[index].name,
                    .epoch = done.plan.position.epoch,
                    .loss = done.report.loss(),
                    .grad_norm = done.report.grad_norm,
                    .lr = done.lr};
  record.tokens = done.plan.tokens;
  record.targets = done.plan.targets;
  const std::vector<std::string>& trained = recipe_.stages[index].train;
  for (size_t part = 0; part < model::kPartCount; ++part) {
    const char* name = model::part_name(static_cast<model::Part>(part));
    if (std::find(trained.begin(), trained.end(), name) != trained.end())
      record.part_norms[name] = done.report.part_norms[part];
  }
  record.images = done.plan.images;
  double pairs = 0;
  for (const data::Pack& pack : done.plan.packs) {
    record.samples += static_cast<int64_t>(pack.samples.size());
    pairs += pack.attention_pairs;
  }
  record.data_wait_ms = record.exposed_comm_ms = record.memory_gib = record.cpu_use = 0;
  for (const RankPulse& pulse : pulses) {
    record.data_wait_ms = std::max(record.data_wait_ms, pulse.data_wait_ms);
    record.exposed_comm_ms = std::max(record.exposed_comm_ms, pulse.exposed_comm_ms);
    record.memory_gib = std::max(record.memory_gib, pulse.memory_gib);
    record.cpu_use += pulse.cores / static_cast<double>(pulses.size());
  }
  record.step_ms = 1e3 * seconds;
  record.tokens_s = static_cast<double>(record.tokens) / seconds;
  record.samples_s = static_cast<double>(record.samples) / seconds;
  model::Sizes sizes{.tokens = record.tokens,
                     .samples = record.samples,
                     .images = record.images,
                     .patches = family_->patches_per_image(),
                     .targets = record.targets,
                     .attention_pairs = pairs};
  for (const RankPulse& pulse : pulses) {
    sizes.patch_rows += static_cast<int64_t>(pulse.patch_rows);
    sizes.picture_pairs += pulse.picture_pairs;
    sizes.window_pairs += pulse.window_pairs;
  }
  record.mfu =
      model::model_flops(*model_, sizes, params_->trainable()).total() / (seconds * gemm_flops_);
  record.skipped = !done.report.updated;
  record.skip_reason = done.skip_reason;
  return record;
}

void Trainer::add_gathered(StepRecord& record, const StageStep& done, size_t index) {
  if (recipe_.metrics.sources_due(global_step_)) {
    const LossBy by = tallies_[index].of(done, *comm_.control);
    record.loss_by = by.modality;
    record.loss_by_source = by.source;
  }
  if (is_due(recipe_.metrics.gpu_use, global_step_) && comm_.rank == 0)
    record.gpu_use = devices_.gpus().value_or(kUnknown);
}

void Trainer::save(StageRun& stage, size_t index) {
  if (saved_step_ == global_step_) return;
  RunSnapshot snapshot{
      .run_id = run_id_,
      .global_step = global_step_,
      .stage = recipe_.stages[index].name,
      .stage_step = stage.next_step(),
      .update_count = stage.optimizer().update_count(),
      .tokens_seen = tokens_seen_,
      .bad_samples = bad_samples_,
      .contract = resume_contract(recipe_),
      .data = data_fingerprints(sets_),
      .config = family_->config(),
      .average_updates = average_ ? average_->count() : 0,
      .loss_scale = stage.loss_scaler() ? stage.loss_scaler()->state() : optim::LossScaler::State{},
      .seed = recipe_.seed};
  state::SaveRequest request{.run_ckpt = options_.run_directory / "ckpt",
                             .step = static_cast<uint64_t>(global_step_),
                             .tensors = weight_tensors(*params_),
                             .state = snapshot.to_json(),
                             .previous_save_id = save_id_,
                             .keep_last = recipe_.checkpoint_keep};
  for (state::StateTensor& moment : stage.moments()) request.tensors.push_back(std::move(moment));
  if (average_) {
    for (state::StateTensor& tensor : average_tensors(*model_, *average_))
      request.tensors.push_back(std::move(tensor));
  }
  save_id_ = state::save_state(*comm_.control, request, options_.fault_hook);
  saved_step_ = global_step_;
  if (comm_.rank == 0) log::info("run", "saved", {{"step", global_step_}});
}

}  // namespace mm::run
