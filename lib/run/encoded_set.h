#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "lib/ckpt/safetensors.h"
#include "lib/data/dataset.h"
#include "lib/run/encoded_manifest.h"

namespace mm::run {

/// An encoded set, opened beside its data set. Headers are read at opening, a row's numbers when
/// asked for. Const members may be called from any thread.
class EncodedSet {
 public:
  /// Throws DataError, naming what differs: another data set or preparation than `dataset`'s, a
  /// unit that is missing, cut or holds other rows than it should.
  static std::unique_ptr<EncodedSet> open(const std::filesystem::path& directory,
                                          const data::Dataset& dataset);

  const EncodedSettings& settings() const { return settings_; }
  /// Throws DataError unless the latents (captions) are this model's: its directory's model_hash,
  /// text_models_hash. Captions must have been written in this way too; of sets of before that was
  /// recorded, whose list is empty, it is taken for granted.
  void require_vae(const std::string& hash) const;
  void require_text(const std::string& hash, const std::vector<CaptionWriting>& writing) const;

  /// [C, h, w] fp32, scaled by the VAE's scale and shift: mean + deviation * noise, or the mean
  /// where that is all there is or `noise` is undefined.
  at::Tensor latents(uint64_t row, const at::Tensor& noise) const;
  /// [tokens, D] and [P], fp32.
  at::Tensor caption(uint64_t row) const;
  at::Tensor pooled(uint64_t row) const;

 private:
  /// Where a row's latents are.
  struct Place {
    const ckpt::TensorEntry* entry = nullptr;
    uint64_t index = 0;
  };
  explicit EncodedSet(EncodedSettings settings) : settings_(std::move(settings)) {}
  void add_unit(const std::filesystem::path& path, uint64_t first, uint64_t count);
  void place_latents(const ckpt::SafetensorsFile& file, uint64_t first, uint64_t count);
  void place_captions(const ckpt::SafetensorsFile& file, uint64_t count);
  const ckpt::SafetensorsFile& file_of(uint64_t row) const;

  EncodedSettings settings_;
  std::vector<std::unique_ptr<ckpt::SafetensorsFile>> files_;
  std::vector<Place> latents_;
  std::vector<int64_t> caption_ends_;  ///< inside the unit
};

}  // namespace mm::run
