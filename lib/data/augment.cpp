#include "lib/data/augment.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/random.h"

namespace mm::data {
namespace {

/// Row `from` of a [height, width, 3] picture, flipped and moved, into `out`.
void move_row(const uint8_t* from, const PictureChange& change, int32_t width, uint8_t* out) {
  for (int32_t x = 0; x < width; ++x) {
    const int32_t moved = std::clamp(x - change.dx, 0, width - 1);
    const int32_t source = change.flip ? width - 1 - moved : moved;
    std::copy_n(from + ptrdiff_t{3} * source, 3, out + ptrdiff_t{3} * x);
  }
}

}  // namespace

void check(const Augmentation& augmentation) {
  if (augmentation.shift_pixels < 0) {
    throw UsageError("shift is {} pixels; it must be 0 or more", augmentation.shift_pixels);
  }
  if (!(augmentation.flip_probability >= 0 && augmentation.flip_probability <= 1)) {
    throw UsageError("flip probability is {}; it must be 0 to 1", augmentation.flip_probability);
  }
  if (!(augmentation.token_drop >= 0 && augmentation.token_drop <= 1)) {
    throw UsageError("token drop is {}; it must be 0 to 1", augmentation.token_drop);
  }
  if (!(augmentation.brightness >= 0 && augmentation.brightness <= 1)) {
    throw UsageError("brightness is {}; it must be 0 to 1", augmentation.brightness);
  }
}

PictureChange draw_change(const Augmentation& augmentation, uint64_t epoch, uint64_t sample_id,
                          uint32_t picture) {
  const Philox random =
      Philox(augmentation.seed, "augment").child(epoch).child(sample_id).child(picture);
  const auto span = static_cast<uint64_t>(2 * int64_t{augmentation.shift_pixels} + 1);
  PictureChange change;
  change.dx =
      static_cast<int32_t>(static_cast<int64_t>(random.below(0, span)) - augmentation.shift_pixels);
  change.dy =
      static_cast<int32_t>(static_cast<int64_t>(random.below(1, span)) - augmentation.shift_pixels);
  change.flip = random.uniform(2) < augmentation.flip_probability;
  change.gain = 1 + augmentation.brightness * (2 * random.uniform(3) - 1);
  return change;
}

void apply_change(const PictureChange& change, int32_t height, int32_t width,
                  std::span<uint8_t> rgb) {
  if (change == PictureChange{} || height == 0 || width == 0) return;
  const std::vector<uint8_t> before(rgb.begin(), rgb.end());
  const size_t row_bytes = size_t{3} * static_cast<size_t>(width);
  for (int32_t y = 0; y < height; ++y) {
    const int32_t source = std::clamp(y - change.dy, 0, height - 1);
    move_row(before.data() + row_bytes * static_cast<size_t>(source), change, width,
             rgb.data() + row_bytes * static_cast<size_t>(y));
  }
  if (change.gain == 1) return;
  for (uint8_t& value : rgb) {
    value = static_cast<uint8_t>(std::clamp(std::lround(value * change.gain), 0L, 255L));
  }
}

void drop_tokens(const Augmentation& augmentation, uint64_t epoch, uint64_t sample_id,
                 const SampleText& text, std::span<int32_t> tokens) {
  if (augmentation.token_drop == 0) return;
  const Philox random = Philox(augmentation.seed, "token drop").child(epoch).child(sample_id);
  for (const TokenSpan& span : text.trainable) {
    for (uint32_t i = span.begin; i < span.end; ++i) {
      if (random.uniform(i) < augmentation.token_drop) tokens[i] = augmentation.drop_token;
    }
  }
}

void augment_pictures(const Augmentation& augmentation, uint64_t epoch, uint64_t sample_id,
                      const PictureLayout& layout, std::span<uint8_t> pixels) {
  if (!augmentation.enabled()) return;
  if (layout.varied) {
    throw UsageError(
        "random changes of pictures need one tile a picture; this data set has pictures of several "
        "tiles or sizes");
  }
  const size_t picture_bytes = layout.pixel_bytes();
  for (size_t i = 0; (i + 1) * picture_bytes <= pixels.size() && picture_bytes > 0; ++i) {
    const auto change = draw_change(augmentation, epoch, sample_id, static_cast<uint32_t>(i));
    apply_change(change, layout.height, layout.width,
                 pixels.subspan(i * picture_bytes, picture_bytes));
  }
}

}  // namespace mm::data
