#pragma once
#include <string>
#include <vector>

#include "lib/model/block.h"
#include "lib/step/program.h"

namespace mm::step {

/// What is run again in the backward instead of being kept. Segments without a backward (frozen
/// prefixes) and the one that yields the loss never are.
struct Recompute {
  enum class Kind { kNone, kBlock, kSelective };
  Kind kind = Kind::kNone;
  /// kSelective: the last words of segment names ("mlp" of "language.layers.3.mlp").
  std::vector<std::string> pieces;
};

/// What a step's list depends on. Nothing here is known from data.
struct BuildOptions {
  int micro_batches =
      1;  ///< of every rank; the plan gives all ranks equally many, some of them empty
  std::vector<bool> trainable;     ///< one flag per parameter; empty: all
  std::vector<BucketRow> buckets;  ///< every trainable parameter in exactly one
  int data_ranks = 1;              ///< 1: no reductions
  bool clip = true;
  Recompute recompute;
  /// Loads and runs the frozen blocks in front of the language model one step ahead, on their own
  /// queue, while the step before is at work. Memory: what they hand on, of a whole step.
  bool frozen_ahead = false;
  /// Pictures that a frozen tower takes at once, 0: all of a micro-batch.
  int pictures_at_once = 0;
  /// Dtype of each part's forward and backward, by model::Part; empty: values are taken as they
  /// come (all parts count in one dtype).
  std::vector<at::ScalarType> compute;
  bool forward_only =
      false;  ///< evaluation: loads and forwards (and the sum of the loss over the ranks)
};

/// The sequential list: per micro-batch a load, the forwards of all blocks in order, the backwards
/// in reverse, so that the activations of one micro-batch live at a time. Blocks without a
/// trainable parameter at or before them have no backward. A bucket's reduction is listed right
/// after the last backward that feeds it, on the data group's queue, so that it overlaps with the
/// backwards that follow; then norm, clip and update. Boundaries vanish: every axis that is built
/// here has size 1 but data, which keeps slots whole, so a block is one joined segment; under
/// selective recompute its segments join where they are treated alike. A recompute stands right
/// before its backward: one tape of them lives at a time. What runs ahead is listed first in its
/// micro-batch, without waits: the border between two steps orders it before its readers. Throws
/// InternalError if the model is not in order (a slot read before it is written, or written twice)
/// or a trainable parameter lies in no bucket or in two. O(instructions).
Program build_step(const model::Model& model, const BuildOptions& options);

}  // namespace mm::step
