#pragma once
#include <span>

#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

// LLaVA-NeXT and OneVision: from the features of tiles to the rows that stand for pictures. P
// patches a tile, G along its side; C hidden size.

/// The parameter that stands behind each line of tiles.
inline constexpr const char* kImageNewline = "image_newline";

struct TileForm {
  int64_t side = 0;  ///< G
  int64_t max_tiles =
      0;  ///< more features than these tiles have are scaled down bilinearly; 0: never
};

/// features [tiles * P, C], newline [C] -> [sum of pictures' tokens, C]. A picture's rows: those of
/// its first tile, then, line by line over its grid of the other tiles without the padding (and
/// scaled down), the features and `newline` behind each line. A picture of one tile has its rows,
/// and one newline if it has a token for it; one of 0 tokens has none. Differentiable in both.
/// Throws InternalError when tokens and tiles do not fit.
at::Tensor arrange_tiles(const at::Tensor& features, const at::Tensor& newline,
                         std::span<const PictureShape> pictures, const TileForm& form);

/// Appends arrange_tiles as a block that reads Batch::pictures; declares image_newline. Returns the
/// slot "features".
Slot add_tile_arrangement(Model& model, const LlavaConfig& config, Slot tile_features);

/// What a picture of height x width pixels becomes under `config`: its grid of tiles with the whole
/// first, and its tokens, as `mmshard pack --geometry anyres` lays it out.
PictureShape tiled_shape(const LlavaConfig& config, int64_t height, int64_t width);

}  // namespace mm::model
