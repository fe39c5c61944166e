#include "lib/model/segment_attention.h"

#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

void check_borders(const std::vector<int64_t>& borders) {
  const int64_t n = borders.back();
  std::vector<at::Tensor> qkv;
  for (uint64_t seed = 1; seed <= 3; ++seed) qkv.push_back(draw({n, 2, 4}, at::kDouble, seed));
  check_same([&](const auto& x) { return segment_attention(x[0], x[1], x[2], borders); },
             [&](const auto& x) { return segment_attention_reference(x[0], x[1], x[2], borders); },
             qkv, 1e-12);
}

}  // namespace

TEST_CASE("segment_attention equals one run at a time, forward and backward") {
  check_borders({0, 4, 8, 12});      // equal runs: one batch
  check_borders({0, 7});             // one run
  check_borders({0, 4, 6, 10, 11});  // mixed lengths
  check_borders({0, 4, 4, 6, 10});   // an empty run
}

TEST_CASE("segment_attention: a run sees itself whole and nothing else") {
  at::Tensor q = draw({6, 1, 4}), k = draw({6, 1, 4}, at::kDouble, 2),
             v = draw({6, 1, 4}, at::kDouble, 3);
  const at::Tensor before = segment_attention(q, k, v, {0, 2, 6});
  v[5] += 1;
  const at::Tensor after = segment_attention(q, k, v, {0, 2, 6});
  CHECK(at::equal(before.narrow(0, 0, 2), after.narrow(0, 0, 2)));
  CHECK((before[2] - after[2]).abs().min().item<double>() >
        1e-4);  // an earlier row sees a later one
}

TEST_CASE("segment_attention of nothing is nothing") {
  const at::Tensor none = at::empty({0, 2, 4}, at::kDouble);
  CHECK(segment_attention(none, none, none, {0}).sizes() == at::IntArrayRef({0, 8}));
  CHECK(segment_attention_reference(none, none, none, {0}).sizes() == at::IntArrayRef({0, 8}));
}
