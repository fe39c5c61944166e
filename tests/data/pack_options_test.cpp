#include "lib/data/pack_options.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/data/tiny_dataset.h"
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
  refused([](PackOptions& o) { o.pictures.pass_order = "pillow11"; }, "pillow12, pillow13");
  refused([](PackOptions& o) { o.pictures.storage = "bmp"; }, "raw, jpeg");
  refused([](PackOptions& o) { o.pictures.jpeg_quality = 0; }, "JPEG quality");
  refused([](PackOptions& o) { o.pictures.storage = "latent"; }, "image encoder");
  refused([](PackOptions& o) { o.pictures.webp_quality = 101; }, "WebP quality");
  refused([](PackOptions& o) { o.pictures.alpha = "grey"; }, "#rrggbb");
  refused([](PackOptions& o) { o.pictures.orient = "turn"; }, "apply, ignore");
  refused([](PackOptions& o) { o.pictures.merge = 3; }, "merge is 3");
  refused([](PackOptions& o) { o.pictures.limits.max_aspect = 0.5; }, "max aspect");
  refused([](PackOptions& o) { o.pictures.limits.min_side = 0; }, "min side");
  refused([](PackOptions& o) { o.pictures.geometry = "bucket"; }, "buckets: 0 pairs");
  refused(
      [](PackOptions& o) {
        o.pictures.geometry = "bucket";
        o.pictures.buckets = "8x8,8x9";
      },
      "bucket 8x9");
  refused(
      [](PackOptions& o) {
        o.pictures.geometry = "anyres";
        o.pictures.grids = "1x2,2y1";
      },
      "\"2y1\"");
  refused(
      [](PackOptions& o) {
        o.pictures.geometry = "internvl";
        o.pictures.min_tiles = 13;
      },
      "min tiles");
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

TEST_CASE("pack options: options at their default leave no trace, so older sets are the same") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", good_rows(1));
  PackOptions options = toy_options(dir / "in.jsonl");
  const mm::Json usual = canonical_options(options)["pictures"];
  CHECK(usual == mm::Json{{"side", 8},
                          {"patch", 4},
                          {"geometry", "crop"},
                          {"filter", "bicubic"},
                          {"storage", "raw"},
                          {"max_pixels", 178956970}});
  options.pictures.alpha = "black";
  options.pictures.geometry = "qwen";
  options.pictures.pass_order = "pillow13";
  const mm::Json other = canonical_options(options)["pictures"];
  CHECK(other["alpha"] == "black");
  CHECK(other["pass_order"] == "pillow13");
  const PictureOptions read = picture_options_from(other, "test");
  CHECK(preparation_of(read).order == mm::image::PassOrder::kPillow13);
  CHECK(other["max_prepared_pixels"] == 1280 * 28 * 28);
}

TEST_CASE("pack options: qwen refuses aspect ratios above 200 unless told otherwise") {
  PictureOptions pictures{.geometry = "qwen"};
  CHECK(decode_options_of(pictures).limits.max_aspect == 200);
  pictures.limits.max_aspect = 300;
  CHECK(decode_options_of(pictures).limits.max_aspect == 300);
  CHECK(decode_options_of({}).limits.max_aspect == 0);
}
