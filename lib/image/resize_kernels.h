#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace mm::image {

/// Rows that the horizontal pass takes together: one vector lane each.
inline constexpr int kLanes = 16;
/// Inputs that share a step of a kernel. Weights are padded with zeros to whole quads.
inline constexpr int kQuad = 4;
/// Bytes of a quad of pixels of all lanes: [3 channels, 16 lanes, 4 taps].
inline constexpr size_t kQuadBytes = size_t{3} * kLanes * kQuad;
/// Columns that the vertical pass takes together.
inline constexpr size_t kWideColumns = 64;

/// The inner loops of `resize`, one set for each kind of CPU. All sets give the same bytes: sums
/// are integers modulo 2^32, and the true sum fits.
struct ResizeKernels {
  const char* name;          ///< "portable", "avx2", "avx512"
  size_t packed_quad_bytes;  ///< of four weights as this set reads them
  /// Splits four 22-bit weights into what the multiplier of this CPU takes.
  void (*pack_quad)(const int32_t* weights, uint8_t* packed);
  /// [16, pixels, 3] at `rows` (row stride `stride` bytes) to quads, ceil(pixels / 4) of
  /// kQuadBytes; the taps past the last pixel hold anything. Reads no byte past a row's last pixel.
  void (*rows_to_quads)(const uint8_t* rows, size_t stride, size_t pixels, uint8_t* quads);
  /// out[channel, lane] = clip((2^21 + sum over quads and taps of weight * byte) >> 22), 48 bytes.
  void (*weigh_quads)(const uint8_t* quads, const uint8_t* packed, int32_t count, uint8_t* out);
  /// The same down the rows: out[i] from in[k * stride + i], i < columns, k < 4 * count. `columns`
  /// is a multiple of kWideColumns.
  void (*weigh_rows)(const uint8_t* in, size_t stride, const uint8_t* packed, int32_t count,
                     size_t columns, uint8_t* out);
};

/// Plain loops, for every CPU; the definition of the others.
extern const ResizeKernels kPortableKernels;
/// The sets that this CPU runs, best first; the last is portable.
std::span<const ResizeKernels* const> usable_kernels();

/// [columns, 16] bytes to [16, columns], row stride `stride`.
void lanes_to_rows(const uint8_t* lanes, size_t columns, uint8_t* rows, size_t stride);

}  // namespace mm::image
