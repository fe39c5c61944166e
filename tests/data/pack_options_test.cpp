#include "lib/data/pack_options.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;

TEST_CASE("pack options: impossible ones are usage errors that say what may be") {
  const auto refused = [](auto edit, const char* words) {
    PackOptions options = toy_options("in.jsonl");
    edit(options);
    CHECK_THROWS_WITH_AS(check(options), doctest::Contains(words), mm::UsageError);
  };
  refused([](PackOptions& o) { o.pictures.patch = 9; }, "patch is 9");
  refused([](PackOptions& o) { o.pictures.side = 0; }, "image side is 0");
  refused([](PackOptions& o) { o.pictures.geometry = "round"; }, "crop, pad, squash");
  refused([](PackOptions& o) { o.pictures.filter = "soft"; }, "bicubic");
  refused([](PackOptions& o) { o.pictures.storage = "bmp"; }, "raw, jpeg");
  refused([](PackOptions& o) { o.pictures.jpeg_quality = 0; }, "JPEG quality");
  refused([](PackOptions& o) { o.chat_template = "none"; }, "vicuna_v1");
  refused([](PackOptions& o) { o.max_length = 1; }, "max length");
}

TEST_CASE("pack options: the first difference is named in dots") {
  const mm::Json a = {{"x", 1}, {"y", {{"z", "p"}}}};
  CHECK(!first_difference(a, a));
  CHECK(first_difference(a, {{"x", 2}, {"y", {{"z", "p"}}}}) == "x: 1 there, 2 now");
  CHECK(first_difference(a, {{"x", 1}, {"y", {{"z", "q"}}}}) == "y.z: \"p\" there, \"q\" now");
  CHECK(first_difference(a, {{"x", 1}}) == "y: {\"z\":\"p\"} there, null now");
}
