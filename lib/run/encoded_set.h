#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/recent_pool.h"
#include "lib/data/dataset.h"
#include "lib/run/encoded_manifest.h"
#include "lib/run/encoded_unit.h"

namespace mm::run {

/// An encoded set, opened beside its data set. Headers are read at opening, a row's numbers when
/// asked for and then compared with the sum that was written beside them. However many units there
/// are, few files are open at a time. Const members may be called from any thread.
class EncodedSet {
 public:
  /// Throws DataError, naming what differs: another data set or preparation than `dataset`'s, a
  /// unit that is missing, cut, of other settings, or holds other rows or sizes than it should.
  /// `open_units` > 0: files that may be open at a time.
  static std::unique_ptr<EncodedSet> open(const std::filesystem::path& directory,
                                          const data::Dataset& dataset,
                                          size_t open_units = kOpenUnits);
  /// Of the usual limit of 1,024 descriptors.
  static constexpr size_t kOpenUnits = 64;

  const EncodedSettings& settings() const { return settings_; }
  const std::filesystem::path& directory() const { return directory_; }
  /// XXH3-128 of manifest.json, which has the hash of every unit.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Throws DataError unless the latents (captions) are this model's: its directory's model_hash,
  /// text_models_hash. Captions must have been written in this way too; of sets of before that was
  /// recorded, whose list is empty, it is taken for granted.
  void require_vae(const std::string& hash) const;
  void require_text(const std::string& hash, const std::vector<CaptionWriting>& writing) const;
  /// Throws DataError unless latents are scaled and shifted so.
  void require_scaling(double scale, double shift) const;

  /// False for a row that could not be read when it was to be encoded: it has no numbers.
  bool has(uint64_t row) const;
  /// Of all rows.
  uint64_t absent_rows() const;
  /// Whether a row was made of a caption of these ids; true where the set does not say.
  bool made_of(uint64_t row, std::span<const int32_t> tokens) const;

  /// [C, h, w] fp32, scaled by the VAE's scale and shift: mean + deviation * noise, or the mean
  /// where that is all there is or `noise` is undefined. This and the next two throw DataError for
  /// bytes that are not what was written, naming unit and row.
  at::Tensor latents(uint64_t row, const at::Tensor& noise) const;
  /// [tokens, D] and [P], fp32.
  at::Tensor caption(uint64_t row) const;
  at::Tensor pooled(uint64_t row) const;

 private:
  EncodedSet(EncodedSettings settings, size_t open_units);
  at::Tensor read(uint64_t row, UnitPart part) const;
  const EncodedUnit& unit_of(uint64_t row) const;

  EncodedSettings settings_;
  std::filesystem::path directory_;
  std::string fingerprint_;
  std::vector<EncodedUnit> units_;
  mutable RecentPool<File> files_;  ///< of units, by number
};

/// Whether a stage's set, null for none, has latents or captions.
inline bool has_latents(const EncodedSet* set) {
  return set != nullptr && set->settings().channels > 0;
}
inline bool has_text(const EncodedSet* set) {
  return set != nullptr && set->settings().text_width > 0;
}

}  // namespace mm::run
