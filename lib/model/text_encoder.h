#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/model/block.h"
#include "lib/model/eager.h"

namespace mm::model {

// Text encoders of diffusion models: CLIP's (lib/model/clip_text.h), T5's (t5_encoder.h), BERT's
// (bert_encoder.h). N captions of at most L tokens, width D. What stands in padded places changes
// no real token's output (field case C55).

enum class TextFamily { kClip, kT5, kBert };

/// Captions as rows of equal length.
struct PaddedText {
  at::Tensor ids;   ///< [N, L] int64
  at::Tensor mask;  ///< [N, L] bool: true is a token, false padding; on the right
};

/// How captions become rows: `length` 0 means the longest of them, else longer ones are cut.
struct TextPadding {
  int64_t length = 0;
  int64_t id = 0;
};
/// One sample of the micro-batch a row.
PaddedText pad_text(const Batch& batch, const TextPadding& padding);
PaddedText pad_text(const std::vector<std::vector<int64_t>>& captions, const TextPadding& padding);

/// One block of an encoder: x [N, L, D] in and out; the first makes x of the ids and is given none.
struct TextStage {
  std::string name;
  std::vector<ParamId> params;
  std::function<at::Tensor(const ParamView&, const PaddedText&, const at::Tensor&)> forward;
  double weights = 0;  ///< multiply-adds for a token
  double width = 0;    ///< D of the attention; 0: has none
  double saved = 0;    ///< numbers kept for the backward, for a token
};

/// An encoder whose parameters were declared.
struct TextEncoder {
  TextFamily family = TextFamily::kClip;
  int64_t width = 0;                  ///< D
  int64_t pooled_width = 0;           ///< of the vector of a whole caption
  int64_t vocab = 0, max_length = 0;  ///< max_length 0: any
  int64_t pad_id = 0;
  bool pads_seen = false;  ///< CLIP: captions are padded to max_length and all rows are context
  std::vector<TextStage> layers;  ///< embeddings, then one a layer
  TextStage final_norm;           ///< params may be empty
  /// hidden [N, L, D] after final_norm -> [N, pooled_width].
  TextStage pool;
};

/// From a Hugging Face config.json by its model_type: "clip_text_model", "t5", "bert". Parameters
/// of Part::kTextEncoder are declared in the order of the blocks, named as the files with `prefix`
/// before them. Throws DataError naming `origin` and key.
TextEncoder declare_text_encoder(Model& model, const Json& config, const std::string& origin,
                                 const std::string& prefix);

struct EncodedText {
  at::Tensor hidden;       ///< [N, L, D] after the final norm
  at::Tensor penultimate;  ///< [N, L, D] before the last layer, not normed: what SD3 and SDXL take
  at::Tensor pooled;       ///< [N, pooled_width]
};
/// Throws DataError for ids outside the vocabulary or more tokens than there are positions.
EncodedText encode_text(const TextEncoder& encoder, const ParamView& params,
                        const PaddedText& text);

/// Appends the encoder to a model, one block a layer, reading captions from Batch::tokens and
/// cu_seqlens as pad_text makes rows of them. Consumers get the mask from pad_text.
struct TextSlots {
  Slot hidden = -1, penultimate = -1, pooled = -1;  ///< as EncodedText
};
TextSlots add_text_encoder(Model& model, const TextEncoder& encoder, const TextPadding& padding);

/// A frozen encoder read from a Hugging Face directory.
class LoadedTextEncoder {
 public:
  /// Reads config.json and the safetensors files, keeps the values in `dtype`. Throws as
  /// declare_text_encoder and load_strictly.
  LoadedTextEncoder(const std::filesystem::path& directory, at::ScalarType dtype);
  const TextEncoder& encoder() const { return encoder_; }
  EncodedText encode(const PaddedText& text) const;

 private:
  Model model_;
  TextEncoder encoder_;
  SimpleParams params_;
};

}  // namespace mm::model
