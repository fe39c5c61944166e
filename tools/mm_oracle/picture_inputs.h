#pragma once
#include "lib/model/batch.h"
#include "lib/model/llava_config.h"
#include "tools/mm_oracle/folder.h"

namespace mm::oracle {

/// The pictures of a folder with tiles or of pictures of any size: "image_sizes" or
/// "image_grid_thw" of io.safetensors as shapes. Throws DataError if they do not fit the model.
std::vector<model::PictureShape> read_pictures(Folder& folder, const model::LlavaConfig& config);

/// Sets pictures and what follows from them (layout of patches, positions, sizes) and the pixels,
/// in which `batch` differs by family. `pixels` as in io.safetensors, in the batch's dtype; tokens,
/// cu_seqlens and image_token_index are there already.
void set_pictures(std::vector<model::PictureShape> pictures, const at::Tensor& pixels,
                  const model::LlavaConfig& config, model::Batch& batch);

/// The first `tokens` tokens of the first sample with the pictures that begin in them.
model::Batch first_tokens(const model::Batch& batch, int64_t tokens,
                          const model::LlavaConfig& config);

}  // namespace mm::oracle
