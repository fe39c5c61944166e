#pragma once
#include "tests/model/tiny_llava.h"

namespace mm::model::test {

/// tiny_config() as LLaVA-NeXT: tiles of 8 pixels (2 x 2 patches of 4), grids of up to 3 tiles.
LlavaConfig tiny_next_config();
/// The same as OneVision: features of more than one tile are scaled down.
LlavaConfig tiny_onevision_config();
/// Qwen2.5-VL: patches of 4 pixels, 2 x 2 a token, windows of 2 x 2 tokens, 2 layers, the second of
/// which sees whole pictures; heads of 8 with sections 1, 1, 2.
LlavaConfig tiny_qwen_config();

/// Original sizes of a sample's pictures (Qwen: sizes in tokens), then its text, all of which but
/// the first token are targets. One text token stands before and one between pictures.
struct VariedSample {
  std::vector<PictureShape> pictures;
  std::vector<int64_t> text;
};
/// A picture of so many tokens.
PictureShape sized_picture(const LlavaConfig& config, int64_t token_rows, int64_t token_columns);

/// Packs samples. Pixels depend on the sample's first text token and the picture's number only.
Batch varied_batch(const LlavaConfig& config, const std::vector<VariedSample>& samples,
                   at::ScalarType dtype = at::kDouble);

}  // namespace mm::model::test
