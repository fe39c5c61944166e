#include "tools/mm_oracle/not_built.h"

#include <doctest/doctest.h>

using namespace mm::oracle;

TEST_CASE("a pattern's star stands for any run of characters") {
  CHECK(matches("*", ""));
  CHECK(matches("*", "a/b"));
  CHECK(matches("noise/*", "noise/linear/betas"));
  CHECK(matches("*/anyres_tiles", "wide/anyres_tiles"));
  CHECK(matches("a*b*c", "axxbxbc"));
  CHECK(!matches("noise/*", "noises"));
  CHECK(!matches("*/anyres_tiles", "wide/anyres_tile"));
  CHECK(!matches("a*b*c", "axxbxbd"));
  CHECK(!matches("", "a"));
}

TEST_CASE("the table speaks for one kind at a time") {
  CHECK(is_not_built("moe", "mixtral/logits"));
  CHECK(!is_not_built("schedules", "lr/curves/cosine_to_min"));
  CHECK(!is_not_built("llava", "mixtral/logits"));
  CHECK(!is_not_built("no_such_kind", "anything"));
}
