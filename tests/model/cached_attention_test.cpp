#include "lib/model/cached_attention.h"

#include "lib/base/error.h"
#include "lib/model/attention.h"
#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

/// Rows of one long sample, cut into the calls of a generation.
struct Text {
  at::Tensor q = draw({12, 4, 6}), k = draw({12, 2, 6}, at::kDouble, 2),
             v = draw({12, 2, 6}, at::kDouble, 3);
  int64_t window = 0;
  at::Tensor whole = packed_attention(q, k, v, {0, 12}, window);

  at::Tensor call(KvCache& cache, int64_t begin, int64_t count) const {
    const auto rows = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    const at::Tensor out = cached_attention({rows(q), rows(k), rows(v)}, {0, count}, cache,
                                            {.layer = 1, .window = window});
    cache.advance({0, count});
    return out;
  }
};

}  // namespace

TEST_CASE("cached_attention in several calls equals the whole text at once") {
  const Text t;
  KvCache cache(1, 12);
  const at::Tensor out =
      at::cat({t.call(cache, 0, 5), t.call(cache, 5, 1), t.call(cache, 6, 3), t.call(cache, 9, 3)});
  CHECK(relative(out, t.whole) < 1e-13);
  CHECK_THROWS_WITH_AS(t.call(cache, 0, 1), doctest::Contains("needs 13 places"),
                       mm::InternalError);
}

TEST_CASE("cached_attention with a window equals the whole text at once with the same window") {
  const Text t{.window = 4};
  KvCache cache(1, 12);
  const at::Tensor out = at::cat({t.call(cache, 0, 6), t.call(cache, 6, 1), t.call(cache, 7, 5)});
  CHECK(relative(out, t.whole) < 1e-13);
}

TEST_CASE(
    "cached_attention: samples of different lengths do not see each other nor their padding") {
  const Text t;
  KvCache cache(2, 12);
  const auto both = [&](int64_t a, int64_t b, int64_t c, int64_t d) {
    const auto rows = [&](const at::Tensor& x) {
      return at::cat({x.narrow(0, a, b), x.narrow(0, c, d)});
    };
    const at::Tensor out =
        cached_attention({rows(t.q), rows(t.k), rows(t.v)}, {0, b, b + d}, cache, {});
    cache.advance({0, b, b + d});
    return out;
  };
  both(0, 7, 0, 2);
  const at::Tensor second = both(7, 1, 2, 3);
  CHECK(relative(second.narrow(0, 0, 1), t.whole.narrow(0, 7, 1)) < 1e-13);
  CHECK(relative(second.narrow(0, 1, 3), t.whole.narrow(0, 2, 3)) < 1e-13);
}

TEST_CASE("cached_attention with a shared prefix equals each continuation behind its own copy") {
  const Text t;
  KvCache prefix(1, 5);
  t.call(prefix, 0, 5);
  KvCache cache(&prefix);
  // Two continuations of the same five rows: rows 5..8 and row 5 alone.
  const auto rows = [&](const at::Tensor& x) {
    return at::cat({x.narrow(0, 5, 4), x.narrow(0, 5, 1)});
  };
  const at::Tensor out =
      cached_attention({rows(t.q), rows(t.k), rows(t.v)}, {0, 4, 5}, cache, {.layer = 1});
  CHECK(relative(out.narrow(0, 0, 4), t.whole.narrow(0, 5, 4)) < 1e-13);
  CHECK(relative(out.narrow(0, 4, 1), t.whole.narrow(0, 5, 1)) < 1e-13);
  CHECK(prefix.lengths[0] == 5);
}
