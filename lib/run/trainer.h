#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lib/base/exit_code.h"
#include "lib/base/run_dir.h"
#include "lib/ckpt/safetensors_writer.h"
#include "lib/data/dataset.h"
#include "lib/health/device_use.h"
#include "lib/run/comm.h"
#include "lib/run/loss_tally.h"
#include "lib/run/metrics.h"
#include "lib/run/model_family.h"
#include "lib/run/recipe.h"
#include "lib/run/sample_ledger.h"
#include "lib/run/stage_run.h"
#include "lib/state/load_state.h"

namespace mm::run {

enum class Resume { kAuto, kMust, kNever };

/// How a start of a run is meant, besides its recipe.
struct TrainOptions {
  std::filesystem::path run_directory;
  Resume resume = Resume::kAuto;
  int64_t stop_after = 0;                ///< save and stop after this global step; 0: at the end
  bool allow_loss_change = false;        ///< resume although the recipe's loss is another
  bool keep_records = false;             ///< for tests: `records` has every step of this start
  std::function<bool()> stop_requested;  ///< asked at every step's end on every rank
  ckpt::FaultHook fault_hook;            ///< for tests that die at named moments
};

/// One rank of a run, from set-up to the last step. Every rank of `comm` constructs one and calls
/// `run`; both are collective. The caller owns processes, signals and groups, so the same code runs
/// in threads of one process (layout proofs) and under a launcher.
class Trainer {
 public:
  /// Opens data, builds the model, and restores the newest whole checkpoint of the run. Throws on
  /// all ranks what any rank met.
  Trainer(const Recipe& recipe, Comm& comm, const TrainOptions& options);
  ~Trainer();

  /// Trains to the end: kDone; or until a stop is asked for: saves on all ranks, kSavedRunAgain.
  ExitCode run();

  int64_t global_step() const { return global_step_; }
  const optim::ParamStore& params() const { return *params_; }
  /// Of this start, in order; on rank 0, if TrainOptions::keep_records.
  const std::vector<StepRecord>& records() const { return records_; }

 private:
  /// As all_or_none, for what reads large files: no rank waits in a collective meanwhile.
  void patiently(const std::function<void()>& work);
  void open_data();
  void build();
  void check_memory() const;
  void restore();
  void start_weights();
  void start_average();
  void check_contract(const Json& saved) const;
  void prepare_directory();
  void remark() const;
  void measure_machine();
  std::unique_ptr<StageRun> start_stage(size_t index, int64_t stage_step);
  bool step(StageRun& stage, size_t index);
  StepRecord record_of(const StageStep& done, size_t index, double seconds,
                       const std::vector<RankPulse>& pulses) const;
  /// Figures that ranks gather for it, in the steps that are due. Collective.
  void add_gathered(StepRecord& record, const StageStep& done, size_t index);
  /// [sample]'s grid where one is due: RUN/samples/step-N.png and TensorBoard. Collective.
  void draw_grid();
  /// [validation]'s loss where it is due, into the step's record. Collective.
  void measure_held_out(StepRecord& record);
  void note_bad_samples(const StageStep& done, size_t index);
  /// Of an epoch that begins: RUN/ledger/dropped.jsonl. Collective then.
  void note_dropped(const StageStep& done, size_t index);
  void save(StageRun& stage, size_t index);

  const Recipe& recipe_;
  Comm& comm_;
  const TrainOptions options_;
  std::vector<std::unique_ptr<data::Dataset>> sets_;  ///< one a stage
  std::unique_ptr<ModelFamily> family_;
  std::vector<std::unique_ptr<data::SampleStore>> stores_;  ///< one a stage; null: the set itself
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<optim::ParamStore> params_;
  std::unique_ptr<optim::Ema> average_;  ///< null without [ema]
  std::optional<state::Checkpoint> resumed_;
  std::unique_ptr<MetricsWriter> metrics_;  ///< rank 0
  std::unique_ptr<SampleLedger> ledger_;
  std::string run_id_, save_id_;
  double gemm_flops_ = 1;  ///< measured, all ranks together
  int64_t global_step_ = 0;
  int64_t saved_step_ = -1;
  int64_t tokens_seen_ = 0, bad_samples_ = 0;
  health::DeviceUse devices_;
  std::vector<LossTally> tallies_;  ///< one a stage
  std::vector<StepRecord> records_;
};

}  // namespace mm::run
