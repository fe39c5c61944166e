#pragma once
#include <cstdint>
#include <string_view>

#include "lib/text/pair_table.h"

namespace mm::text {

/// Pieces by their bytes: walks a text and meets every piece that begins it. One hash look-up a
/// byte.
class PrefixTree {
 public:
  static constexpr int32_t kRoot = 0;

  /// `id` >= 0; a piece that is there already keeps its id.
  void add(std::string_view piece, int32_t id) {
    int32_t node = kRoot;
    for (size_t i = 0; i < piece.size(); ++i) {
      const bool last = i + 1 == piece.size();
      const auto byte = static_cast<unsigned char>(piece[i]);
      node = last ? put_id(node, byte, id) : child_or_new(node, byte);
    }
  }

  struct Step {
    int32_t node = -1;  ///< -1: no piece begins so
    int32_t id = -1;    ///< of the piece that ends here, or -1
  };
  Step step(int32_t node, char c) const {
    const auto* found = children_.find(node, static_cast<unsigned char>(c));
    return found != nullptr ? Step{found->first, found->second} : Step{};
  }

 private:
  int32_t child_or_new(int32_t node, unsigned char byte) {
    if (const auto* found = children_.find(node, byte)) return found->first;
    children_.add(node, byte, {++last_, -1});
    return last_;
  }
  int32_t put_id(int32_t node, unsigned char byte, int32_t id) {
    const int32_t child = child_or_new(node, byte);
    auto* value = children_.find_mutable(node, byte);
    if (value->second < 0) value->second = id;
    return child;
  }

  PairTable children_;
  int32_t last_ = kRoot;
};

}  // namespace mm::text
