#include "lib/ckpt/dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace mm::ckpt {
namespace {

struct DTypeRow {
  std::string_view name;
  int bits;
};

constexpr std::array<DTypeRow, kDTypeCount> kRows = {{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};

}  // namespace

std::string_view dtype_name(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

int size_bits(DType dtype) { return kRows[static_cast<size_t>(dtype)].bits; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::string dtype_names() {
  std::string names;
  for (const DTypeRow& row : kRows) {
    if (!names.empty()) names += ' ';
    names += row.name;
  }
  return names;
}

std::optional<uint64_t> element_count(std::span<const uint64_t> shape) {
  uint64_t count = 1;
  for (const uint64_t dimension : shape) {
    if (__builtin_mul_overflow(count, dimension, &count)) return std::nullopt;
  }
  return count;
}

Result<uint64_t> packed_bytes(DType dtype, std::span<const uint64_t> shape) {
  const std::optional<uint64_t> count = element_count(shape);
  uint64_t bits = 0;
  if (!count || __builtin_mul_overflow(*count, static_cast<uint64_t>(size_bits(dtype)), &bits)) {
    return Failure{"overflow", fmt::format("shape {} of {} does not fit 64 bits", shape_text(shape),
                                           dtype_name(dtype))};
  }
  if (bits % 8 != 0) {
    return Failure{"partial_byte", fmt::format("shape {} of {} fills {} bits, not whole bytes",
                                               shape_text(shape), dtype_name(dtype), bits)};
  }
  return bits / 8;
}

std::string shape_text(std::span<const uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace mm::ckpt
