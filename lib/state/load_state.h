#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "lib/ckpt/checkpoint_manifest.h"
#include "lib/dist/group.h"
#include "lib/state/state_tensor.h"

namespace mm::state {

/// A committed checkpoint that was found whole.
struct Checkpoint {
  std::filesystem::path directory;
  ckpt::Manifest manifest;
};

/// Collective: rank 0 finds the newest checkpoint of RUN/ckpt that is committed and whole (every
/// byte verified), says why it passed over others, and tells the other ranks; all get the same one,
/// or none when the run has none. Throws DataError on all ranks when there are only broken ones.
std::optional<Checkpoint> find_checkpoint(dist::Group& group,
                                          const std::filesystem::path& run_ckpt);

/// The same for one process. `path` may be a run (its newest), a ckpt directory, or one checkpoint.
Checkpoint open_checkpoint(const std::filesystem::path& path);

/// Fills `into` from the checkpoint, whatever the number of ranks that wrote it. Floating-point
/// types are converted into the model's. Throws DataError naming the tensor when it is missing or
/// has another shape (both are named).
void load_tensors(const Checkpoint& checkpoint, const std::vector<StateTensor>& into);

}  // namespace mm::state
