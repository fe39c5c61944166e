#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/model/block.h"

namespace mm::step {

/// Bytes that the slots of an executor hold; a view counts as its elements.
struct SlotBytes {
  int64_t live = 0;
  int64_t peak = 0;
  void add(int64_t bytes) {
    live += bytes;
    peak = std::max(peak, live);
  }
};

/// The values, or the gradients, of one micro-batch's slots. An empty place is an undefined tensor;
/// a gradient that is not there is zero.
class SlotStore {
 public:
  SlotStore(size_t slots, SlotBytes& bytes) : tensors_(slots), bytes_(&bytes) {}

  const at::Tensor& operator[](model::Slot slot) const {
    return tensors_[static_cast<size_t>(slot)];
  }

  void set(model::Slot slot, at::Tensor tensor) {
    at::Tensor& place = tensors_[static_cast<size_t>(slot)];
    bytes_->add(size_of(tensor) - size_of(place));
    place = std::move(tensor);
  }
  /// Adds out of place: autograd may hand the same tensor to two readers of a sum.
  void accumulate(model::Slot slot, at::Tensor gradient) {
    const at::Tensor& place = (*this)[slot];
    set(slot, place.defined() ? place.add(gradient) : std::move(gradient));
  }
  at::Tensor take(model::Slot slot) {
    at::Tensor& place = tensors_[static_cast<size_t>(slot)];
    bytes_->add(-size_of(place));
    return std::exchange(place, at::Tensor());
  }
  /// The tensors go over, their bytes count where they then are.
  void swap_contents(SlotStore& other) {
    for (size_t s = 0; s < tensors_.size(); ++s) {
      at::Tensor mine = take(static_cast<model::Slot>(s));
      set(static_cast<model::Slot>(s), other.take(static_cast<model::Slot>(s)));
      other.set(static_cast<model::Slot>(s), std::move(mine));
    }
  }
  void clear() {
    for (size_t s = 0; s < tensors_.size(); ++s) take(static_cast<model::Slot>(s));
  }

 private:
  static int64_t size_of(const at::Tensor& tensor) {
    return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
  }

  std::vector<at::Tensor> tensors_;
  SlotBytes* bytes_;
};

}  // namespace mm::step
