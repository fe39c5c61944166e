#pragma once
#include <cstdint>
#include <vector>

#include "lib/data/picture_grid.h"
#include "lib/data/pixel_memory.h"

namespace mm::data {

/// One pack as it comes from the loader, without LibTorch. T tokens, S samples, I pictures of one
/// common size. Empty (all sizes 0) when a rank has no pack in this slot of the step.
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
  int64_t target_count = 0;
  double attention_pairs = 0;
};

}  // namespace mm::data
