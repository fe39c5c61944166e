#pragma once
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/model/batch.h"
#include "lib/model/block.h"
#include "lib/step/joined_segment.h"
#include "lib/step/program.h"
#include "lib/step/slot_store.h"

namespace mm::step {

/// The leaves of the segment that runs; a parameter that it did not declare would get no gradient,
/// so it is refused.
class DeclaredParams final : public model::ParamView {
 public:
  explicit DeclaredParams(size_t params) : leaves_(params) {}
  void take(const model::ParamView& source, const std::vector<model::ParamId>& ids) {
    for (model::ParamId id : ids) leaves_[static_cast<size_t>(id)] = source.get(id);
  }
  void drop(const std::vector<model::ParamId>& ids) {
    for (model::ParamId id : ids) leaves_[static_cast<size_t>(id)].reset();
  }
  at::Tensor get(model::ParamId id) const override {
    const at::Tensor& leaf = leaves_.at(static_cast<size_t>(id));
    MM_CHECK(leaf.defined(), "a segment reads parameter {}, which it does not declare", id);
    return leaf;
  }

 private:
  std::vector<at::Tensor> leaves_;
};

/// What a micro-batch holds while it is under way.
struct Flight {
  Flight(const Program& program, SlotBytes& bytes)
      : values(program.slots, bytes),
        gradients(program.slots, bytes),
        tapes(program.segments.size()) {}
  void clear() {
    batch = {};
    values.clear();
    gradients.clear();
    for (Tape& tape : tapes) tape.clear();
  }
  /// Exchanges batch and values with a flight of another step; nobody has gradients or tapes yet.
  void swap_contents(Flight& other) {
    std::swap(batch, other.batch);
    values.swap_contents(other.values);
  }
  model::Batch batch;
  SlotStore values, gradients;
  std::vector<Tape> tapes;  // [segments]
};

}  // namespace mm::step
