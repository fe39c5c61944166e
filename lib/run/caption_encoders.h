#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "lib/model/text_encoder.h"
#include "lib/run/caption_shape.h"
#include "lib/run/caption_tokenizers.h"

namespace mm::run {

/// Frozen text encoders that read a caption together. One gives its normed hidden states and its
/// pooled vector. Several are CLIP encoders, then perhaps T5, joined as SD3 does (Esser et al.
/// 2024, figure 2): the CLIP encoders' states before the last layer side by side, filled up with
/// zeros to T5's width, T5's states as further rows; pooled are the CLIP encoders' vectors side by
/// side. Runs in `dtype`, fp32 or float64. Const members may be called from any thread.
class CaptionEncoders {
 public:
  /// Captions come as ids of the tokenizer in `tokenizer`. An encoder whose directory has that file
  /// (by content) takes them as they are; others get the text, written anew in ids of the
  /// tokenizer in their directory (text::find_tokenizer) or, for "text_encoder_2" and the like, in
  /// "tokenizer_2" beside it. T5's captions end with its end mark, and are filled up or
  /// cut to `padding` tokens unless it is 0; the filling is read like text. CLIP's are filled up
  /// with pad_token of its tokenizer's settings, or with pad_token_id of its config.json. Throws
  /// UsageError for encoders that do not go together, DataError where no encoder has the tokenizer,
  /// or one that needs its own has none.
  CaptionEncoders(const std::vector<std::filesystem::path>& directories, int64_t padding,
                  const std::filesystem::path& tokenizer, at::ScalarType dtype = at::kFloat);

  const CaptionShape& shape() const { return shape_; }
  const std::vector<CaptionWriting>& writing() const { return tokenizers_.writing; }
  /// hidden[i] [rows, width] of each caption; pooled [N, pooled_width].
  struct States {
    std::vector<at::Tensor> hidden;
    at::Tensor pooled;
  };
  States encode(const std::vector<std::vector<int32_t>>& captions) const;

 private:
  using Ids = std::vector<std::vector<int64_t>>;
  Ids ids_for(size_t tower, const std::vector<std::vector<int32_t>>& captions) const;
  model::EncodedText run(size_t tower, const Ids& ids) const;
  States alone(const std::vector<std::vector<int32_t>>& captions) const;
  States joined(const std::vector<std::vector<int32_t>>& captions) const;

  CaptionShape shape_;
  int64_t padding_;
  CaptionTokenizers tokenizers_;
  std::vector<std::unique_ptr<const model::LoadedTextEncoder>> towers_;
};

}  // namespace mm::run
