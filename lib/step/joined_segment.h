#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/model/block.h"
#include "lib/step/program.h"
#include "lib/step/slot_store.h"

namespace mm::step {

/// What a forward leaves for its backward. Vectors keep their capacity from step to step.
struct Tape {
  std::vector<at::Tensor>
      leaves;  ///< detached inputs that need a gradient, then trained parameters
  std::vector<at::Tensor> outputs;  ///< of SegmentRow::out those that need a gradient, in order
  bool has_gaps = false;  ///< the micro-batch lacks tokens or pictures: an output may be a constant
  void clear() {
    leaves.clear();
    outputs.clear();
  }
};

/// Runs one row of Program::segments under one tape. Not thread-safe; one object per executor.
class JoinedSegment {
 public:
  /// `model` and `row` must outlive it.
  JoinedSegment(const model::Model& model, const SegmentRow& row);

  /// Reads `row.in` from `values`, writes `row.out` detached (an undefined output stays undefined).
  /// Segments must not write into their inputs. Throws InternalError if an input is missing or a
  /// segment returns another number of tensors than it declares.
  void forward(const model::SegmentContext& context, SlotStore& values, Tape& tape);

  /// The same once more from the same inputs, for the tape that `forward` left out
  /// (SegmentRow::recompute); writes no slot.
  void recompute(const model::SegmentContext& context, const SlotStore& values, Tape& tape);

  /// One engine call. Takes the gradients of `row.out` from `gradients` (absent: zero), seeds the
  /// loss, adds to the gradients of `row.in` and hands each trained parameter's gradient to `sink`.
  /// Clears the tape.
  void backward(Tape& tape, SlotStore& gradients, double loss_seed, model::GradSink& sink);

  /// Lets go of what a forward or backward that threw left behind.
  void drop_tensors();

  const SegmentRow& row() const { return row_; }

 private:
  struct Part {
    const model::Segment* segment;
    std::vector<int> inputs;  ///< registers
  };
  void forward_in_chunks(const model::SegmentContext& context, SlotStore& values);
  at::Tensor as_computed(const at::Tensor& value) const;
  void collect_leaves(const model::SegmentContext& context, const SlotStore& values, Tape& tape);
  void keep_outputs(const model::SegmentContext& context, Tape& tape);
  void run_parts(const model::SegmentContext& context);
  /// Fills roots_ and root_gradients_.
  void collect_roots(const Tape& tape, SlotStore& gradients, double loss_seed);

  const model::Model& model_;
  const SegmentRow& row_;
  std::vector<Part> parts_;
  std::vector<int> outputs_;           ///< register of each `row.out`
  std::vector<at::Tensor> registers_;  ///< inputs, then each part's outputs
  std::vector<at::Tensor> arguments_, roots_, root_gradients_;
};

}  // namespace mm::step
