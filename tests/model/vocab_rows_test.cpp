#include "lib/model/vocab_rows.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"

using namespace mm::model;

TEST_CASE("C49: tables are filled up to a multiple, on each rank of the tensor axis") {
  CHECK(filled_rows(32'002, 64) == 32'064);
  CHECK(filled_rows(50'257, 128, 1) == 50'304);
  CHECK(filled_rows(50'257, 128, 2) == 50'432);
  CHECK(filled_rows(151'936, 128, 2) == 152'064);
  CHECK(filled_rows(32'064, 64) == 32'064);
  CHECK(filled_rows(7, 1) == 7);
  CHECK_THROWS_AS((void)filled_rows(7, 0), mm::InternalError);
}

TEST_CASE("C49: new rows are the mean of the old ones, which keep their bits") {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const at::Tensor old = at::arange(12, at::kFloat).view({4, 3}).to(dtype);
    const at::Tensor grown = grow_rows(old, 6);
    const bool as_asked = grown.size(0) == 6 && grown.size(1) == 3 && grown.scalar_type() == dtype;
    REQUIRE(as_asked);
    CHECK(at::equal(grown.narrow(0, 0, 4), old));
    const at::Tensor mean = at::tensor({4.5, 5.5, 6.5}).to(dtype);
    for (const int64_t row : {4, 5}) {
      CHECK(at::equal(grown[row], mean));
      CHECK_FALSE(at::equal(grown[row], old[3]));
    }
  }
  const at::Tensor same = at::ones({2, 2});
  CHECK(grow_rows(same, 2).is_same(same));
  CHECK_THROWS_AS((void)grow_rows(same, 1), mm::InternalError);
}

TEST_CASE("vocabulary tables are known by name") {
  CHECK(is_vocab_table("language_model.model.embed_tokens.weight"));
  CHECK(is_vocab_table("language_model.lm_head.weight"));
  CHECK_FALSE(is_vocab_table("vision_tower.vision_model.embeddings.position_embedding.weight"));
}
