#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/dist/group.h"

namespace mm::run {

/// The groups that a rank trains with. Two, so that gradient buckets on the data group's thread
/// never meet control messages.
struct Comm {
  int rank = 0, world = 1;
  int local_world = 1;  ///< ranks of this node
  std::string host;
  std::unique_ptr<dist::Group>
      data;  ///< gradient sums; while a step runs only the executor uses it
  std::unique_ptr<dist::Group> control;  ///< small agreements at step borders, saves, barriers
};

/// What every rank tells the others when a step is done.
struct RankPulse {
  double data_wait_ms = 0, exposed_comm_ms = 0, step_ms = 0, memory_gib = 0;
  double stop = 0;   ///< a signal asked for a stop
  double cores = 0;  ///< processor time / time of the step
  double patch_rows = 0, picture_pairs = 0, window_pairs = 0;  ///< of its pictures (model::Sizes)
  double bad_samples = 0;  ///< failed to read, since the start of the stage
};

/// Collective over `control`: result[r] is rank r's.
std::vector<RankPulse> exchange(dist::Group& control, const RankPulse& mine);

/// Collective: runs `work` on every rank; if it throws an mm::Error on any, every rank throws the
/// first such rank's, with its exit code. For what must not let one rank leave alone (set-up,
/// checks).
void all_or_none(dist::Group& control, const std::function<void()>& work);

/// Peak resident set of this process since it began, GiB: it never falls.
double peak_memory_gib();

}  // namespace mm::run
