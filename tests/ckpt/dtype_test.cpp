#include "lib/ckpt/dtype.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace mm::ckpt;

using Shape = std::vector<uint64_t>;

TEST_CASE("dtype: names and sizes of all 22 types, in alignment order") {
  const std::vector<std::pair<std::string, int>> expected = {
      {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64},        {"U64", 64}};
  REQUIRE(expected.size() == kDTypeCount);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    CHECK(dtype_name(dtype) == expected[i].first);
    CHECK(size_bits(dtype) == expected[i].second);
    CHECK(parse_dtype(expected[i].first) == dtype);
  }
  for (const char* name : {"f32", "I4", "U4", "", "F32 ", "FLOAT"}) CHECK_FALSE(parse_dtype(name));
  CHECK(dtype_names().starts_with("BOOL F4 "));
}

TEST_CASE("dtype: bytes of packed tensors, and shapes that have none") {
  CHECK(packed_bytes(DType::kF32, Shape{}).value() == 4);
  CHECK(packed_bytes(DType::kF32, Shape{2, 3}).value() == 24);
  CHECK(packed_bytes(DType::kI64, Shape{7, 0, 3}).value() == 0);
  CHECK(packed_bytes(DType::kF4, Shape{6}).value() == 3);
  CHECK(packed_bytes(DType::kF6E2M3, Shape{4}).value() == 3);
  CHECK(packed_bytes(DType::kF4, Shape{5}).failure().kind == "partial_byte");
  CHECK(packed_bytes(DType::kF6E3M2, Shape{2}).failure().kind == "partial_byte");
  CHECK(packed_bytes(DType::kU8, Shape{uint64_t{1} << 32, uint64_t{1} << 32}).failure().kind ==
        "overflow");
  // The count fits 64 bits, the bits do not.
  CHECK(packed_bytes(DType::kU8, Shape{uint64_t{1} << 61}).failure().kind == "overflow");
  CHECK(packed_bytes(DType::kU8, Shape{(uint64_t{1} << 61) - 1}).value() ==
        (uint64_t{1} << 61) - 1);
}

TEST_CASE("dtype: dimensions multiply from the left, so an early zero saves a huge product") {
  CHECK(element_count(Shape{0, kMaxDimension, kMaxDimension}) == 0);
  CHECK_FALSE(element_count(Shape{kMaxDimension, kMaxDimension, 0}));
  CHECK(shape_text(Shape{2, 3}) == "[2, 3]");
  CHECK(shape_text(Shape{}) == "[]");
}
