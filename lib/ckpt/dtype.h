#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace mm::ckpt {

/// The element types of the safetensors format. The order of the values is the format's alignment
/// order: writers put tensors of a later type first, so that each tensor starts at a multiple of
/// its element size.
enum class DType : uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};
inline constexpr int kDTypeCount = 22;

/// Largest dimension that a file may state: 2^48 - 1, as in the format's published schema.
inline constexpr uint64_t kMaxDimension = (uint64_t{1} << 48) - 1;

/// The name in files: "F32", "BF16", "F8_E4M3". Case matters.
std::string_view dtype_name(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
/// All names, separated by blanks, for messages.
std::string dtype_names();

/// Bits of one element: 4, 6, 8, 16, 32 or 64.
int size_bits(DType dtype);

/// Product of the dimensions (1 for a scalar), nothing if it does not fit 64 bits. Dimensions
/// multiply from the left.
std::optional<uint64_t> element_count(std::span<const uint64_t> shape);

/// Bytes of a packed tensor. Fails (kind "overflow" or "partial_byte") when the size does not fit
/// 64 bits or a type of less than eight bits does not fill whole bytes.
Result<uint64_t> packed_bytes(DType dtype, std::span<const uint64_t> shape);

/// "[2, 3]"; "[]" for a scalar.
std::string shape_text(std::span<const uint64_t> shape);

}  // namespace mm::ckpt
