#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mm::ckpt {

/// Sums over all tensors below a common beginning of their names, cut at '.' and '/'.
struct TensorTree {
  uint64_t tensors = 0;
  uint64_t bytes = 0;
  std::map<std::string, TensorTree, std::less<>>
      children;  ///< key: the next component, with its separator

  void add(std::string_view name, uint64_t size_bytes);
  /// The parts of a model: the children of the first node that has more than one, with their full
  /// names, e.g. "model.vision_tower."; they point into this tree.
  std::vector<std::pair<std::string, const TensorTree*>> parts() const&;
  void parts() const&& = delete;  ///< the pointers would outlive the tree
  /// Lines "  name  tensors  size" down to `depth` levels; chains of single children are joined.
  /// Numbers as components come in order.
  std::string text(int depth) const;
};

/// "512 B", "1.5 KiB", "2.0 MiB".
std::string size_text(uint64_t bytes);

}  // namespace mm::ckpt
