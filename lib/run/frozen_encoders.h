#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "lib/base/json.h"
#include "lib/model/vae_load.h"
#include "lib/run/caption_encoders.h"
#include "lib/run/recipe.h"

namespace mm::run {

/// Where the frozen models are that stand in front of a diffusion transformer; any may be absent.
struct EncoderPaths {
  std::filesystem::path vae;
  std::vector<std::filesystem::path> text;
  int64_t text_padding = 0;  ///< CaptionEncoders

  bool empty() const { return vae.empty() && text.empty(); }
};
/// model.vae and model.text_model of a recipe.
EncoderPaths encoder_paths(const ModelRecipe& model);

/// "vae", "text_encoders" and "text_padding" of a verb's options; padding below 0: 77 where several
/// text encoders are joined, else 0, as model.text_padding. Throws UsageError for padding without
/// text encoders.
EncoderPaths encoder_options(const Json& options);

/// The models, without gradients; null where there is none. Const members may be called
/// from any thread.
struct Encoders {
  std::unique_ptr<const model::Vae> vae;
  std::unique_ptr<const CaptionEncoders> text;
};
/// `tokenizer`: the file that captions' ids are of. `dtype`: fp32, or float64 in float64 runs.
/// Throws as load_vae and CaptionEncoders do.
std::shared_ptr<const Encoders> load_encoders(const EncoderPaths& paths,
                                              const std::filesystem::path& tokenizer,
                                              at::ScalarType dtype = at::kFloat);

/// Mean and deviation [N, 2C, H/f, W/f] of pictures [N, 3, H, W] in [-1, 1], `at_once` of them at a
/// time (0: all).
at::Tensor mean_and_deviation(const model::Vae& vae, const at::Tensor& pictures, int64_t at_once);

/// How what a stage reads was stored: other numbers come of it, though the models are the same.
struct StoredRecord {
  std::string dtype;  ///< EncodedSettings; empty: the stage encodes on the way
  bool mean_only = false;
  std::string preprocessing;
  bool operator==(const StoredRecord&) const = default;
};

/// RUN/encoders.json: what a run's latents and embeddings are of, so that pictures are drawn by the
/// same models. Empty hashes: pixels, caption ids or classes.
struct EncoderRecord {
  std::string vae, text;                     ///< model_hash, text_models_hash
  std::vector<CaptionWriting> writing = {};  ///< of the captions; empty: not known
  std::vector<StoredRecord> stages = {};  ///< one a stage; empty: not known, or nothing is stored
};
Json to_json(const EncoderRecord& record);
/// What a stage reads otherwise, in words, "" for nothing: "stage 1 is stored in bf16 ..., before
/// it was ...". Nothing differs from what is not known.
std::string stored_difference(const EncoderRecord& before, const EncoderRecord& now);
/// Of a run without the file: empty.
EncoderRecord read_encoder_record(const std::filesystem::path& run);

}  // namespace mm::run
