#include "lib/ckpt/element_box.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/ckpt/dtype.h"

namespace mm::ckpt {
namespace {

constexpr size_t kMaxCutDimensions = 8;
using Point = std::vector<uint64_t>;

std::optional<std::string> outside(std::span<const uint64_t> shape, const ElementBox& box) {
  if (box.offset.size() != shape.size() || box.shape.size() != shape.size()) {
    return fmt::format("box {} has another rank than shape {}", box_text(box), shape_text(shape));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (box.offset[d] > shape[d] || box.shape[d] > shape[d] - box.offset[d]) {
      return fmt::format("box {} reaches outside shape {}", box_text(box), shape_text(shape));
    }
  }
  return std::nullopt;
}

bool overlap(const ElementBox& a, const ElementBox& b) {
  for (size_t d = 0; d < a.shape.size(); ++d) {
    if (a.offset[d] >= b.offset[d] + b.shape[d] || b.offset[d] >= a.offset[d] + a.shape[d])
      return false;
  }
  return true;
}

// The slow, naming search; only once something is known to be wrong.
std::string name_overlap(std::span<const ElementBox> boxes) {
  constexpr size_t kCompared = 2000;
  for (size_t i = 0; i < std::min(boxes.size(), kCompared); ++i) {
    for (size_t j = i + 1; j < std::min(boxes.size(), kCompared); ++j) {
      if (overlap(boxes[i], boxes[j])) {
        return fmt::format("boxes {} and {} overlap", box_text(boxes[i]), box_text(boxes[j]));
      }
    }
  }
  return "boxes overlap";
}

std::vector<size_t> cut_dimensions(std::span<const uint64_t> shape,
                                   std::span<const ElementBox> boxes) {
  std::vector<size_t> cut;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool is_cut = std::any_of(boxes.begin(), boxes.end(), [&](const ElementBox& box) {
      return box.shape[d] != shape[d];
    });
    if (is_cut) cut.push_back(d);
  }
  return cut;
}

void toggle_corners(const ElementBox& box, std::span<const size_t> dimensions,
                    std::vector<Point>& corners) {
  for (size_t mask = 0; mask < (size_t{1} << dimensions.size()); ++mask) {
    Point corner;
    for (size_t k = 0; k < dimensions.size(); ++k) {
      const size_t d = dimensions[k];
      corner.push_back(box.offset[d] + ((mask >> k) & 1 ? box.shape[d] : 0));
    }
    corners.push_back(std::move(corner));
  }
}

// True if every corner stands an even number of times.
bool corners_cancel(std::vector<Point>& corners) {
  std::sort(corners.begin(), corners.end());
  for (size_t i = 0; i < corners.size(); i += 2) {
    if (i + 1 == corners.size() || corners[i] != corners[i + 1]) return false;
  }
  return true;
}

}  // namespace

ElementBox whole_box(std::span<const uint64_t> shape) {
  return {std::vector<uint64_t>(shape.size(), 0), {shape.begin(), shape.end()}};
}

std::string box_text(const ElementBox& box) {
  std::string text = "[";
  for (size_t d = 0; d < std::min(box.offset.size(), box.shape.size()); ++d) {
    text += fmt::format("{}{}:{}", d == 0 ? "" : ", ", box.offset[d], box.offset[d] + box.shape[d]);
  }
  return text + "]";
}

std::optional<std::string> tiling_problem(std::span<const uint64_t> shape,
                                          std::span<const ElementBox> boxes) {
  const std::optional<uint64_t> total = element_count(shape);
  if (!total) return fmt::format("shape {} does not fit 64 bits", shape_text(shape));
  for (const ElementBox& box : boxes) {
    if (auto problem = outside(shape, box)) return problem;
  }
  uint64_t covered = 0;
  for (const ElementBox& box : boxes) {
    const uint64_t count = *element_count(box.shape);
    if (count == 0 && *total > 0) return fmt::format("box {} is empty", box_text(box));
    if (count > *total - covered) return name_overlap(boxes);
    covered += count;
  }
  if (*total == 0) {
    const bool one_whole = boxes.size() == 1 && boxes[0] == whole_box(shape);
    return one_whole ? std::nullopt
                     : std::optional("a tensor without elements needs one box, the whole");
  }
  if (covered < *total)
    return fmt::format("{} of {} elements are missing", *total - covered, *total);
  // The counts agree. If moreover each corner of the boxes and of the whole stands an even number
  // of times, the sum of the boxes equals the whole modulo 2 (both have the same mixed
  // differences), so each element is covered an odd number of times: once.
  const std::vector<size_t> cut = cut_dimensions(shape, boxes);
  if (cut.size() > kMaxCutDimensions)
    return fmt::format("cut in {} dimensions, at most {} are allowed", cut.size(),
                       kMaxCutDimensions);
  std::vector<Point> corners;
  for (const ElementBox& box : boxes) toggle_corners(box, cut, corners);
  toggle_corners(whole_box(shape), cut, corners);
  if (corners_cancel(corners)) return std::nullopt;
  return name_overlap(boxes);
}

}  // namespace mm::ckpt
