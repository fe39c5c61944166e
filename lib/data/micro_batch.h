#pragma once
#include <cstdint>
#include <vector>

#include "lib/data/picture_grid.h"
#include "lib/data/pixel_memory.h"

namespace mm::data {

/// Stands in sample_ids for a picture that only fills a batch.
inline constexpr uint64_t kFillerId = UINT64_MAX;

/// One pack as it comes from the loader, without LibTorch. T tokens, S samples, I pictures of one
/// common size. Empty (all sizes 0) when a rank has no pack in this slot of the step.
///
/// Of a bucketed set S = I: picture i has the caption tokens[cu_seqlens[i] .. cu_seqlens[i + 1]),
/// which may be empty, no placeholders and no targets; grids[i] tells its original size. Fillers
/// stand last: black, without caption, kFillerId, weight 0.
struct MicroBatch {
  std::vector<int32_t> tokens;   ///< [T]; a picture is `patches` copies of the image token
  std::vector<int32_t> targets;  ///< [T]; next token of the same sample where trainable, else -100
  std::vector<int32_t> positions;   ///< [T]; from 0 in each sample
  std::vector<int32_t> cu_seqlens;  ///< [S + 1]; {0} when empty
  std::vector<int32_t>
      image_token_index;  ///< [I * patches]; rows of `tokens` that are placeholders, in order
  PixelVector pixels;     ///< [I, height, width, 3]
  int32_t images = 0, height = 0, width = 0;
  /// In a set of varied pictures: each picture's tiles and tokens, in order. Then `images` counts
  /// tiles, `pixels` holds them one by one, height and width are 0 unless all tiles are equal, and
  /// `image_token_index` has grids[i].tokens rows for picture i.
  std::vector<PictureGrid> grids;
  std::vector<uint64_t> sample_ids;  ///< [S]; row of the index, what the ledger records
  /// Of a bucketed set: [I], 0 for fillers and for pictures that could not be read; empty: all 1.
  std::vector<float> weights;
  int64_t target_count = 0;  ///< in a bucketed set: pictures of weight 1
  double attention_pairs = 0;
};

}  // namespace mm::data
