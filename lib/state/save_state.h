#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/ckpt/commit.h"
#include "lib/dist/group.h"
#include "lib/state/state_tensor.h"

namespace mm::state {

/// What to save and where.
struct SaveRequest {
  std::filesystem::path run_ckpt;  ///< RUN/ckpt
  uint64_t step = 0;               ///< updates in the weights
  std::vector<StateTensor>
      tensors;  ///< equal names and values on every rank (data parallel); each is written once
  Json state;   ///< schedule, position, recipe contract: stored as it is
  std::string previous_save_id;
  int64_t keep_last = 2;  ///< committed checkpoints that stay
};

/// Collective over `group`: every rank writes its share, rank 0 commits and applies retention;
/// durable when it returns. Returns the save's id. If any rank fails, nothing is committed, the
/// temporary files are removed, and every rank throws IoError naming the first that failed.
std::string save_state(dist::Group& group, const SaveRequest& request,
                       const ckpt::FaultHook& hook = {});

}  // namespace mm::state
