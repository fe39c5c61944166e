#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/model/block.h"
#include "lib/step/instruction.h"

namespace mm::step {

/// Consecutive segments of one block with no communication between them, joined under one tape:
/// what a forward or backward instruction runs. Slots that only the joined segments themselves use
/// stay inside.
struct SegmentRow {
  int block = -1;
  int first_step =
      0;  ///< index in Block::steps; `steps` entries from there, boundaries among them are void
  int steps = 0;
  std::vector<model::Slot> in;         ///< read from outside, each once, in order of first use
  std::vector<model::Slot> out;        ///< written and read by others, or the loss, or the logits
  std::vector<uint8_t> in_needs_grad;  ///< per `in`: a gradient leaves here
  std::vector<uint8_t>
      out_needs_grad;  ///< per `out`: a gradient may arrive here (the loss: is seeded)
  std::vector<model::ParamId> params;   ///< all that the segments read
  std::vector<model::ParamId> trained;  ///< those of `params` whose gradients the backward yields
  int loss = -1;                        ///< index in `out` of the scalar loss, -1: none
  bool has_backward = false;            ///< static; without it the forward keeps no tape
  /// The forward keeps no tape either: a recompute makes it, from the inputs, before the backward.
  bool recompute = false;
  /// Frozen, reads nothing but frozen rows: runs a step ahead, beside the step before it.
  bool ahead = false;
  /// Without a backward: pictures that a forward takes at once, 0: all of the micro-batch.
  int pictures_at_once = 0;
  /// Dtype that floating inputs are brought to; gradients leave in that of the value they belong
  /// to. Undefined: inputs are taken as they come.
  at::ScalarType compute = at::ScalarType::Undefined;
};

/// Parameters whose gradients lie in one flat buffer and are reduced by one call.
struct BucketRow {
  std::vector<model::ParamId> params;
  int64_t elements = 0;
};

/// A set of ranks, as far as the list needs it; the executor is given the dist::Group.
struct GroupRow {
  std::string name;
  int size = 1;
};

/// One rank's list for one step and the tables that it refers to. It depends on recipe and plan
/// only, never on data.
struct Program {
  int micro_batches = 0;
  bool forward_only = false;  ///< evaluation: no backward, no update
  bool ahead = false;         ///< loads, and rows that say so, work on the step that follows
  int slots = 0;              ///< rows of Model::slots
  std::vector<SegmentRow> segments;
  std::vector<BucketRow> buckets;
  std::vector<GroupRow> groups;
  std::vector<Instruction> list;

  /// XXH3-64 of the list and of every table; equal on all ranks of a data group.
  uint64_t hash() const;
};

}  // namespace mm::step
