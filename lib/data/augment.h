#pragma once
#include <cstdint>
#include <span>

#include "lib/data/sample.h"
#include "lib/data/sample_store.h"

namespace mm::data {

/// Random changes to pictures at load time; the default changes nothing. Draws are a pure function
/// of (seed, epoch, sample id, picture of the sample), never of rank, thread or step (law 1).
struct Augmentation {
  uint64_t seed = 0;
  int32_t shift_pixels =
      0;  ///< moves by up to so many pixels each way; the edge colour fills the gap
  double flip_probability = 0;  ///< mirror left and right; 0..1
  double brightness = 0;        ///< scales all channels by a factor in [1 - b, 1 + b]; 0..1
  /// Chance that a trained-on token is hidden from the input (it stays a target): word dropout
  /// (Bowman et al. 2016, section 3.1), so that a small decoder reads the picture instead of
  /// remembering which words follow which. 0..1
  double token_drop = 0;
  int32_t drop_token = 0;  ///< what stands in its place
  /// Are pictures changed?
  bool enabled() const { return shift_pixels != 0 || flip_probability != 0 || brightness != 0; }
};

/// Throws UsageError naming the field that is out of range.
void check(const Augmentation& augmentation);

/// The draw for one picture.
struct PictureChange {
  int32_t dx = 0, dy = 0;  ///< pixels to the right and down
  bool flip = false;
  double gain = 1;
  bool operator==(const PictureChange&) const = default;
};
PictureChange draw_change(const Augmentation& augmentation, uint64_t epoch, uint64_t sample_id,
                          uint32_t picture);

/// Applies a change in place: flip, then shift, then gain (rounded, clipped to 0..255). `rgb` is
/// [height, width, 3].
void apply_change(const PictureChange& change, int32_t height, int32_t width,
                  std::span<uint8_t> rgb);

/// Hides input tokens of a sample's trainable spans. `tokens` are the sample's in the micro-batch.
void drop_tokens(const Augmentation& augmentation, uint64_t epoch, uint64_t sample_id,
                 const SampleText& text, std::span<int32_t> tokens);

/// All pictures of a sample, `pixels` [pictures, height, width, 3] of `layout`. Throws UsageError
/// in a set of varied pictures, whose tiles belong together.
void augment_pictures(const Augmentation& augmentation, uint64_t epoch, uint64_t sample_id,
                      const PictureLayout& layout, std::span<uint8_t> pixels);

}  // namespace mm::data
