#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/data/plan_cursor.h"
#include "lib/data/sample_store.h"
#include "lib/model/block.h"
#include "lib/optim/param_store.h"
#include "lib/run/model_family.h"
#include "lib/run/recipe.h"
#include "lib/step/program.h"

namespace mm::run {

/// What one rank of a stage will hold at its fullest, in bytes: computed from the model and the
/// plan, nothing is allocated. Activations are those of the costliest pack by the blocks' cost
/// functions, which count 2 bytes an element and are scaled to the dtype; allocator slack is not
/// counted.
struct MemoryEstimate {
  double weights = 0;      ///< compute copies
  double masters = 0;      ///< of parts that this or a later stage trains, where they are apart;
                           ///< and the moving average
  double gradients = 0;    ///< flat buckets of trained parameters, in the masters' dtype
  double moments = 0;      ///< of the optimizer
  double activations = 0;  ///< kept for the backward, or the largest that is made again
  double logits = 0;       ///< one chunk with its softmax
  double pictures = 0;     ///< pixels of the pack in the tower's dtype
  double drawing = 0;  ///< copies of the weights that [sample] and [validation] take, between steps

  double encoding = 0;         ///< of frozen encoders while they make a batch, before its forward
  bool encodes_ahead = false;  ///< they may do so beside the step before (frozen.ahead)

  double total() const {
    const double step = activations + logits + pictures;
    return weights + masters + gradients + moments +
           std::max({encodes_ahead ? step + encoding : step, encoding, drawing});
  }
  Json to_json() const;  ///< bytes by name, and "total"
};

struct MemoryInputs {
  const model::Model& model;
  const optim::Precision& precision;
  const std::vector<bool>& trainable;
  const std::vector<bool>& masters;  ///< which parameters have one
  int moments = 2;                   ///< tensors of the optimizer a trained parameter has
};

/// `program`: of the stage; `footprint`: of data::PlanCursor::costliest()'s pack.
MemoryEstimate estimate_memory(const MemoryInputs& inputs, const step::Program& program,
                               const PackFootprint& footprint);

/// A stage by its number, as trainer and check ask about it.
struct StageMemoryInputs {
  const Recipe& recipe;
  size_t index;
  const model::Model& model;
  const ModelFamily& family;
  const data::SampleStore& store;
};
struct StageMemory {
  data::PlannedStep costliest;
  MemoryEstimate estimate;
};
/// Plans the stage's first epoch for its costliest pack and builds its program. Throws as
/// data::PlanCursor does.
StageMemory stage_memory(const StageMemoryInputs& inputs);

/// Memory that this process may still take: the node's, or its control group's limit, shared by
/// `local_ranks` processes; nothing if the system does not say.
std::optional<double> memory_available(int local_ranks);

/// One line that says what is needed, what there is and what helps, if `estimate` is more than
/// `available`; else empty.
std::string memory_shortage(const MemoryEstimate& estimate, double available,
                            const std::string& stage);

}  // namespace mm::run
