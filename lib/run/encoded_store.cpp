#include "lib/run/encoded_store.h"

#include <fmt/format.h>

#include <utility>

namespace mm::run {

Failure EncodedStore::named(uint64_t row, const char* kind, const char* what) const {
  return {kind, fmt::format("sample {} ({}): {}", row, key(row), what)};
}

std::vector<Result<data::Sample>> EncodedStore::read_pack(std::span<const uint32_t> rows,
                                                          data::PixelVector& pixels) const {
  std::vector<uint32_t> present;
  for (const uint32_t row : rows)
    if (encoded_.has(row)) present.push_back(row);
  auto found = gives_pixels() ? set_.read_pack(present, pixels) : set_.read_texts(present);
  std::vector<Result<data::Sample>> samples;
  auto next = found.begin();
  for (const uint32_t row : rows) {
    if (!encoded_.has(row)) {
      samples.emplace_back(named(row, kAbsent,
                                 "could not be read when it was to be encoded (mmshard encode); "
                                 "mmshard verify says what is wrong with it"));
      continue;
    }
    samples.push_back(std::move(*next++));
    if (gives_pixels() || !samples.back()) continue;
    if (!encoded_.made_of(row, samples.back()->text.tokens))
      samples.back() = named(row, "corrupt",
                             "its caption is not the one that was encoded; mmshard verify says "
                             "which of the two sets changed");
  }
  return samples;
}

Result<data::Sample> EncodedStore::read(uint64_t row) const {
  const auto only = static_cast<uint32_t>(row);
  data::PixelVector pixels;
  Result<data::Sample> sample = std::move(read_pack({&only, 1}, pixels).front());
  if (sample) sample->pixels.assign(pixels.begin(), pixels.end());
  return sample;
}

void EncodedStore::expect(uint64_t first_step,
                          const std::vector<std::vector<uint32_t>>& files_of_steps) const {
  if (gives_pixels()) set_.expect(first_step, files_of_steps);
}

}  // namespace mm::run
