#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/ckpt/safetensors_writer.h"

namespace mm::ckpt {

// Checkpoints in the layouts of the papers' own code, as diffusers has the same models:
//   DiT     fused qkv; one time and label embedder, which diffusers repeats (dit_embedders.h)
//   PixArt  fused qkv, and kv of the cross attention
//   SD3     fused qkv of two streams; (shift, scale) of the continuous adaLN, which diffusers has
//           the other way round: `norm_out` and the text stream of the last block

enum class OriginalFamily { kDit, kPixart, kSd3 };
/// "DiTTransformer2DModel", "PixArtTransformer2DModel", "SD3Transformer2DModel".
std::string diffusers_class(OriginalFamily family);

/// By names that only this family's files have; nothing for other files. SD3's may have the prefix
/// "model.diffusion_model.", with a VAE and text encoders beside it.
std::optional<OriginalFamily> original_family(const std::vector<TensorSource>& tensors);

/// The tensors under diffusers' names: cut, swapped, computed tables and tensors of other models
/// left out (a line in `notes` each kind). Sorted by name. Throws DataError, naming `origin` and
/// tensor, for a name that the family does not have and rows that do not divide.
std::vector<TensorSource> to_diffusers(std::vector<TensorSource> tensors, OriginalFamily family,
                                       const std::string& origin, std::vector<std::string>& notes);

/// diffusers' config.json as the shapes of to_diffusers()'s tensors imply it. The count of heads
/// is in no shape: of hidden sizes as published it is known, others throw DataError, asking for a
/// configuration. `sides`: latents a side, 0 where no table says it.
Json implied_config(const std::vector<TensorSource>& tensors, OriginalFamily family, int64_t sides,
                    const std::string& origin);

/// Side of the square grid of positions in the original's table, in patches; 0: there is no table.
int64_t original_grid(const std::vector<TensorSource>& tensors);

/// What the original's weights need of a configuration, whoever wrote it: DiT's time embedding
/// divided by 128 and norms of 1e-6; PixArt's learned null caption, if the tensors have it.
void settle_config(Json& config, const std::vector<TensorSource>& tensors, OriginalFamily family);

}  // namespace mm::ckpt
