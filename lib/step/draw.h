#pragma once
#include <string>

#include "lib/model/block.h"
#include "lib/step/program.h"

namespace mm::step {

struct DrawOptions {
  int width = 100;        ///< columns of a band
  bool join_runs = true;  ///< consecutive segments of a micro-batch in one cell where no other
                          ///< queue looks in between
};

/// The list as text, a row per queue, bands of `width` columns. A cell stands where its instruction
/// can start if all take equally long: L load, F forward, B backward, R reduce, N norm, C clip, U
/// update; "F1.0-4" is the forward of segments 0 to 4 of micro-batch 1, "R2" the reduction of
/// bucket 2, "Rl" that of the loss. Above it a head line and the table of segments.
std::string draw(const Program& program, const model::Model& model,
                 const DrawOptions& options = {});

}  // namespace mm::step
