#include "lib/data/sample_store.h"

namespace mm::data {

std::vector<Result<Sample>> SampleStore::read_pack(std::span<const uint32_t> rows,
                                                   PixelVector& pixels) const {
  std::vector<Result<Sample>> samples;
  for (const uint32_t row : rows) {
    samples.push_back(read(row));
    if (!samples.back()) continue;
    const std::vector<uint8_t> own = std::move(samples.back()->pixels);
    samples.back()->pixels.clear();
    pixels.insert(pixels.end(), own.begin(), own.end());
  }
  return samples;
}

std::vector<Result<Sample>> SampleStore::read_texts(std::span<const uint32_t> rows) const {
  PixelVector pixels;
  return read_pack(rows, pixels);
}

}  // namespace mm::data
