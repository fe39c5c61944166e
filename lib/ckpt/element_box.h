#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mm::ckpt {

/// A box of elements of a tensor: in dimension d the indices offset[d] .. offset[d] + shape[d].
/// Both have the tensor's rank.
struct ElementBox {
  std::vector<uint64_t> offset;
  std::vector<uint64_t> shape;
  bool operator==(const ElementBox&) const = default;
};

/// The box that is the whole tensor.
ElementBox whole_box(std::span<const uint64_t> shape);

/// "[512:768, 0:64]"; "[]" for a scalar.
std::string box_text(const ElementBox& box);

/// Nothing if the boxes cover every element of a tensor of `shape` exactly once, else what is wrong
/// ("elements are missing", the two boxes that overlap, a box outside). Each box must hold an
/// element; a tensor without elements has one box, the whole. At most eight dimensions may be cut.
/// O(n log n) for n boxes: it compares corners, not pairs of boxes.
std::optional<std::string> tiling_problem(std::span<const uint64_t> shape,
                                          std::span<const ElementBox> boxes);

}  // namespace mm::ckpt
