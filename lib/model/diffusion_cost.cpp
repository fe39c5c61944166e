#include "lib/model/diffusion_cost.h"

#include <algorithm>

namespace mm::model {
namespace {

/// Sizes as floating-point numbers.
struct Counts {
  double h, pictures, rows, pairs, tokens;
};

Counts counts_of(const DiffusionConfig& c, const Sizes& sizes) {
  return {static_cast<double>(c.hidden()), static_cast<double>(sizes.images),
          static_cast<double>(sizes.patch_rows), sizes.picture_pairs,
          static_cast<double>(sizes.tokens)};
}

// Numbers a token that a layer with self attention and MLP keeps: what both norms take and give, q,
// k, v, the mix and its projection, 4h before and after GELU, the MLP's output.
constexpr double kKeptWidths = 18;

}  // namespace

SegmentCost embedding_cost(const DiffusionConfig& config, const Sizes& sizes) {
  const Counts n = counts_of(config, sizes);
  const auto patch = static_cast<double>(config.in_channels * config.patch * config.patch);
  return {.forward_flops = 2 * n.rows * patch * n.h + 2 * n.pictures * (256 * n.h + n.h * n.h),
          .saved_bytes = n.rows * (10 * patch + 2 * n.h)};
}

SegmentCost dit_layer_cost(const DiffusionConfig& config, const Sizes& sizes) {
  const Counts n = counts_of(config, sizes);
  SegmentCost cost;
  cost.attention_flops = 4 * n.pairs * n.h;
  cost.forward_flops = 24 * n.rows * n.h * n.h + 12 * n.pictures * n.h * n.h + cost.attention_flops;
  cost.saved_bytes = 2 * n.rows * kKeptWidths * n.h;
  return cost;
}

SegmentCost pixart_layer_cost(const DiffusionConfig& config, const Sizes& sizes) {
  const Counts n = counts_of(config, sizes);
  // All pictures of a micro-batch have one size, so patches times tokens is exact.
  const double crossed = n.rows * n.tokens / std::max(n.pictures, 1.0);
  SegmentCost cost;
  cost.attention_flops = 4 * (n.pairs + crossed) * n.h;
  cost.forward_flops = (28 * n.rows + 4 * n.tokens) * n.h * n.h + cost.attention_flops;
  cost.saved_bytes = 2 * (n.rows * (kKeptWidths + 4) + 2 * n.tokens) * n.h;
  return cost;
}

SegmentCost mmdit_layer_cost(const DiffusionConfig& config, const Sizes& sizes, bool dual,
                             bool last) {
  const Counts n = counts_of(config, sizes);
  const double each = n.tokens / std::max(n.pictures, 1.0);
  const double joint = n.pairs + 2 * n.rows * each + n.tokens * each;
  SegmentCost cost;
  cost.attention_flops = 4 * (joint + (dual ? n.pairs : 0)) * n.h;
  const double picture = n.rows * (dual ? 32 : 24), text = n.tokens * (last ? 4 : 24);
  const double modulation = n.pictures * ((dual ? 18 : 12) + (last ? 4 : 12));
  cost.forward_flops = (picture + text + modulation) * n.h * n.h + cost.attention_flops;
  cost.saved_bytes =
      2 * n.h * (n.rows * (kKeptWidths + (dual ? 6 : 0)) + n.tokens * (last ? 4 : kKeptWidths));
  return cost;
}

}  // namespace mm::model
