#pragma once
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/optim/ema.h"
#include "lib/optim/loss_scaler.h"
#include "lib/optim/param_store.h"
#include "lib/state/state_tensor.h"

namespace mm::run {

/// What a checkpoint says of a run besides its tensors: the manifest's `state`.
struct RunSnapshot {
  std::string run_id;
  int64_t global_step = 0;
  std::string stage;         ///< the stage that global_step lies in
  int64_t stage_step = 0;    ///< steps of it that are done: the plan position
  int64_t update_count = 0;  ///< AdamW's, of this stage
  int64_t tokens_seen = 0;
  int64_t bad_samples = 0;
  Json contract;                        ///< resume_contract(recipe)
  Json data;                            ///< fingerprint of each stage's data set
  Json config;                          ///< of the model, as its family writes it
  int64_t average_updates = 0;          ///< of the weights' moving average
  optim::LossScaler::State loss_scale;  ///< of fp16 runs
  uint64_t seed = 0;  ///< of all random draws: they are counter-based, so this is their whole state

  Json to_json() const;
  /// Throws DataError with `origin` for a state of another program or version.
  static RunSnapshot from_json(const Json& json, const std::string& origin);
};

/// All masters under their Hugging Face names.
std::vector<state::StateTensor> weight_tensors(const optim::ParamStore& params);

/// The averages of what has one, "ema." before the names.
std::vector<state::StateTensor> average_tensors(const model::Model& model, const optim::Ema& ema);

/// The first key whose value differs between what was saved and what is now, as "key: saved X, now
/// Y"; empty if none. `data` fingerprints are compared too.
std::string contract_difference(const Json& saved, const Json& now);

}  // namespace mm::run
