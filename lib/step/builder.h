#pragma once
#include <vector>

#include "lib/model/block.h"
#include "lib/step/program.h"

namespace mm::step {

/// What a step's list depends on. Nothing here is known from data.
struct BuildOptions {
  int micro_batches =
      1;  ///< of every rank; the plan gives all ranks equally many, some of them empty
  std::vector<bool> trainable;     ///< one flag per parameter; empty: all
  std::vector<BucketRow> buckets;  ///< every trainable parameter in exactly one
  int data_ranks = 1;              ///< 1: no reductions
  bool clip = true;
  bool forward_only =
      false;  ///< evaluation: loads and forwards (and the sum of the loss over the ranks)
};

/// The sequential list: per micro-batch a load, the forwards of all blocks in order, the backwards
/// in reverse, so that the activations of one micro-batch live at a time. Blocks without a
/// trainable parameter at or before them have no backward. A bucket's reduction is listed right
/// after the last backward that feeds it, on the data group's queue, so that it overlaps with the
/// backwards that follow; then norm, clip and update. Boundaries vanish: every axis that is built
/// here has size 1 but data, which keeps slots whole, so a block is one joined segment. Throws
/// InternalError if the model is not in order (a slot read before it is written, or written twice)
/// or a trainable parameter lies in no bucket or in two. O(instructions).
Program build_step(const model::Model& model, const BuildOptions& options);

}  // namespace mm::step
