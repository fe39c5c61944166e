#include "lib/model/attention.h"

#include <cmath>

#include "lib/base/error.h"
#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

// By the definition, in float64, for one query head at a time.
at::Tensor by_definition(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const std::vector<int64_t>& borders, int64_t window = 1 << 20) {
  const int64_t heads = q.size(1), share = heads / k.size(1), d = q.size(2);
  at::Tensor out = at::zeros({q.size(0), heads, d}, at::kDouble);
  for (size_t s = 1; s < borders.size(); ++s) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = borders[s - 1]; i < borders[s]; ++i) {
        const int64_t begin = std::max(borders[s - 1], i - window + 1), seen = i - begin + 1;
        const at::Tensor keys = k.narrow(0, begin, seen).select(1, h / share);
        const at::Tensor weights =
            at::softmax(at::mv(keys, q[i][h]) / std::sqrt(static_cast<double>(d)), 0);
        out[i][h] = at::mv(v.narrow(0, begin, seen).select(1, h / share).t(), weights);
      }
    }
  }
  return out.flatten(1);
}

const std::vector<int64_t> kBorders{0, 3, 8, 8, 9, 14, 40};

}  // namespace

TEST_CASE("packed_attention equals the definition: causal, grouped heads, no sample sees another") {
  const at::Tensor q = draw({40, 4, 6}), k = draw({40, 2, 6}, at::kDouble, 2),
                   v = draw({40, 2, 6}, at::kDouble, 3);
  CHECK(relative(packed_attention(q, k, v, kBorders), by_definition(q, k, v, kBorders)) < 1e-13);
}

TEST_CASE(
    "packed_attention, fused and in groups, equals one sample at a time, forward and backward") {
  const auto check = [](at::ScalarType dtype, double tolerance,
                        const std::vector<int64_t>& borders) {
    const int64_t rows = borders.back();
    check_same(
        [&](const auto& x) { return packed_attention(x[0], x[1], x[2], borders); },
        [&](const auto& x) { return packed_attention_reference(x[0], x[1], x[2], borders); },
        {draw({rows, 4, 8}, dtype), draw({rows, 2, 8}, dtype, 2), draw({rows, 2, 8}, dtype, 3)},
        tolerance);
    check_same(
        [&](const auto& x) { return grouped_attention(x[0], x[1], x[2], borders); },
        [&](const auto& x) { return packed_attention_reference(x[0], x[1], x[2], borders); },
        {draw({rows, 4, 8}, dtype), draw({rows, 2, 8}, dtype, 2), draw({rows, 2, 8}, dtype, 3)},
        tolerance);
  };
  check(at::kDouble, 1e-13, kBorders);
  check(at::kFloat, 1e-5, kBorders);
  check(at::kHalf, 5e-3, kBorders);
  check(at::kBFloat16, 3e-2, kBorders);
  check(at::kDouble, 1e-13, {0, 5, 10, 15});
  check(at::kDouble, 1e-13, {0, 7});
}

TEST_CASE("packed_attention with a window equals the definition; a window wider than all is none") {
  const at::Tensor q = draw({40, 4, 6}), k = draw({40, 2, 6}, at::kDouble, 2),
                   v = draw({40, 2, 6}, at::kDouble, 3);
  for (int64_t window : {1, 3, 7})
    CHECK(relative(packed_attention(q, k, v, kBorders, window),
                   by_definition(q, k, v, kBorders, window)) < 1e-13);
  CHECK(at::equal(packed_attention(q, k, v, kBorders, 40), packed_attention(q, k, v, kBorders)));
  check_same(
      [&](const auto& x) { return packed_attention(x[0], x[1], x[2], kBorders, 3); },
      [&](const auto& x) { return packed_attention_reference(x[0], x[1], x[2], kBorders, 3); },
      {q, k, v}, 1e-13);
  CHECK(relative(grouped_attention(q, k, v, kBorders, 3),
                 packed_attention_reference(q, k, v, kBorders, 3)) < 1e-13);
}

TEST_CASE("packed_attention of no tokens gives no rows") {
  const at::Tensor none = at::empty({0, 4, 8}, at::kFloat);
  CHECK(packed_attention(none, none, none, {0}).sizes() == at::IntArrayRef({0, 32}));
  CHECK(packed_attention(none, none, none, {0, 0, 0}).sizes() == at::IntArrayRef({0, 32}));
}

TEST_CASE("packed_attention names what does not fit") {
  const at::Tensor q = draw({4, 4, 8}), k = draw({4, 3, 8});
  CHECK_THROWS_AS(packed_attention(q, k, k, {0, 4}), mm::InternalError);
  CHECK_THROWS_AS(packed_attention(q, q, q, {0, 3}), mm::InternalError);
}

TEST_CASE("group_by_length: each non-empty sample once, padding below the share, longest first") {
  const std::vector<int64_t> lengths{5, 0, 60, 58, 4, 57, 5, 31, 1};
  const auto groups = group_by_length(lengths, kMaxPaddingShare);
  std::vector<int> seen(lengths.size(), 0);
  int64_t before = 1 << 20;
  for (const LengthGroup& group : groups) {
    int64_t real = 0;
    for (int64_t sample : group.samples) {
      ++seen[sample];
      real += lengths[sample];
      CHECK(lengths[sample] <= group.padded_length);
    }
    const auto rows =
        static_cast<double>(group.padded_length * static_cast<int64_t>(group.samples.size()));
    CHECK(rows - static_cast<double>(real) <= kMaxPaddingShare * rows);
    CHECK(group.padded_length < before);
    before = group.padded_length;
  }
  for (size_t i = 0; i < lengths.size(); ++i) CHECK(seen[i] == (lengths[i] > 0 ? 1 : 0));
}

TEST_CASE("full_attention sees every patch of its picture and of no other") {
  const at::Tensor q = draw({2, 5, 2, 4}), k = draw({2, 5, 2, 4}, at::kDouble, 2),
                   v = draw({2, 5, 2, 4}, at::kDouble, 3);
  const at::Tensor out = full_attention(q, k, v);
  const at::Tensor weights = at::softmax(at::einsum("ihd,jhd->hij", {q[1], k[1]}) / 2.0, -1);
  CHECK(relative(out[1], at::einsum("hij,jhd->ihd", {weights, v[1]}).flatten(1)) < 1e-13);
  CHECK(full_attention(q.narrow(0, 0, 0), k.narrow(0, 0, 0), v.narrow(0, 0, 0)).sizes() ==
        at::IntArrayRef({0, 5, 8}));
}
