#pragma once
#include <memory>
#include <vector>

#include "lib/data/dataset_manifest.h"
#include "lib/run/data_access.h"
#include "lib/run/diffusion_setup.h"
#include "lib/run/encoded_set.h"
#include "lib/run/frozen_encoders.h"
#include "lib/run/recipe.h"

namespace mm::run {

/// Pictures and captions that frozen encoders take at once, 0: all of a micro-batch.
struct FrozenParts {
  int64_t pictures = 0, captions = 0;
};

/// Where a diffusion run's pictures and captions come from, stage by stage: pixels and ids as they
/// were packed, what mmshard encode stored, or frozen encoders on the way. Const members may be
/// called from any thread.
class DiffusionInputs {
 public:
  /// Opens the stages' encoded sets; of the encoders only config.json is read. Throws as
  /// EncodedSet::open does; DataError where a stage's set is of other models than the recipe's or
  /// than another stage's, or lacks more rows than loader.bad_sample_limit; UsageError where pixels
  /// are augmented whose latents are stored.
  DiffusionInputs(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets);
  ~DiffusionInputs();

  /// What all stages have.
  const StoredInputs& shape() const { return shape_; }
  /// Null where the stage has none.
  const EncodedSet* stored(size_t stage) const { return stored_.at(stage).get(); }
  /// The stages' encoded sets.
  std::vector<OpenedData> opened() const;
  /// Throws DataError if the set has latents that are scaled otherwise than the recipe's VAE, if
  /// there is one, does.
  void require_scaling(const EncodedSet& set) const;
  /// What encodes for this stage on the way; null where all is stored, pixels and ids. Loads the
  /// models at the first call; throws as load_encoders does.
  const Encoders* online(size_t stage) const;
  /// All of the recipe's models, loaded, for drawing; null where there is none.
  std::shared_ptr<const Encoders> all() const;
  /// Whether drawing takes no models beside those that stages encode with on the way.
  bool online_models_draw() const { return paths_.empty() || any_online(); }
  /// Numbers of the weights that online() loads, or all() for [sample] and [validation].
  double online_elements() const;
  /// What making a batch of the pack takes beside the weights of `online`, in bytes, at the
  /// fullest.
  double encoding_bytes(size_t stage, const data::Pack& pack, const FrozenParts& at_once) const;
  /// Hashes of what latents and embeddings are of. Reads the models' files, the first time all of
  /// them, which takes as long as reading their weights.
  EncoderRecord record() const;
  /// The tokenizer file of captions.
  const std::filesystem::path& tokenizer() const { return tokenizer_; }

 private:
  struct Lazy;
  /// Whether some stage encodes pictures or captions on the way.
  bool any_online() const;
  bool latents_stored(size_t stage) const;
  bool text_stored(size_t stage) const;
  std::vector<CaptionWriting> writing() const;  ///< of the recipe's text models
  std::string vae_hash() const;                 ///< of the recipe's models, computed once
  std::string text_hash() const;
  void open_stored(const Recipe& recipe);
  void check_stages_agree(const Recipe& recipe) const;
  void find_shape();

  EncoderPaths paths_;
  std::filesystem::path tokenizer_;
  at::ScalarType dtype_;
  std::vector<std::unique_ptr<EncodedSet>> stored_;
  StoredInputs shape_;
  double vae_elements_ = 0, text_elements_ = 0;
  double vae_live_ = 0;   ///< numbers a pixel has at its fullest while the VAE encodes
  double text_live_ = 0;  ///< CaptionShape::live
  bool draws_ = false;
  std::unique_ptr<Lazy> lazy_;
};

}  // namespace mm::run
