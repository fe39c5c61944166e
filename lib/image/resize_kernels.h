#pragma once
#include <cstddef>
#include <cstdint>

namespace mm::image {

/// Rows that the horizontal pass takes together: one vector lane each.
inline constexpr int kLanes = 16;

/// [16, columns] bytes at `rows` (row stride `stride`) to [columns, 16]. Any `columns`.
void rows_to_lanes(const uint8_t* rows, size_t stride, size_t columns, uint8_t* lanes);
/// [columns, 16] bytes back to [16, columns].
void lanes_to_rows(const uint8_t* lanes, size_t columns, uint8_t* rows, size_t stride);

/// Weighted sum of `count` pixels, each [3, 16] bytes (channel, lane), rounded and clipped: out[i]
/// = clip((2^21 + sum_k weights[k] * pixels[48 k + i]) >> 22) for i < 48. Integers only, so every
/// CPU gives the same bytes.
void weigh_pixels(const uint8_t* pixels, const int32_t* weights, int32_t count, uint8_t* out);

/// The same down the rows: out[i] from in[k * stride + i], i < columns. `columns` is a multiple
/// of 64.
void weigh_rows(const uint8_t* in, size_t stride, const int32_t* weights, int32_t count,
                size_t columns, uint8_t* out);

}  // namespace mm::image
