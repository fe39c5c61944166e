#include "lib/image/tiling.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zlib.h>

#include <cstdlib>

#include "lib/image/decode.h"
#include "lib/image/encode.h"
#include "lib/image/prepare.h"
#include "tests/image/fixtures.h"

using namespace mm;
using namespace mm::image;
using namespace mm::image::testing;

namespace {

std::vector<Size> points_of(const Json& hw_list) {
  std::vector<Size> points;
  for (const Json& hw : hw_list) points.push_back({hw[1], hw[0]});
  return points;
}

Json oracle() { return parse_json(fixture("oracles/images/expected.json"), "expected.json"); }

// As tools/make_resize_golden.py makes it.
Image golden_picture(int32_t width, int32_t height, uint32_t seed) {
  Image out(width, height);
  for (uint32_t i = 0; i < out.rgb.size(); ++i) {
    const uint32_t noise = (i * 2654435761U + seed * 40503U) >> 13 & 255;
    const uint32_t kind = i / 997 % 3;
    out.rgb[i] = static_cast<uint8_t>(kind == 0   ? noise
                                      : kind == 1 ? (noise & 1) * 255
                                                  : i / 7 + seed);
  }
  return out;
}

// The settings of tools/make_geometry_golden.py.
Preparation golden_preparation(const std::string& geometry) {
  return {.geometry = *geometry_from_name(geometry),
          .side = 56,
          .merge = 2,
          .max_tiles = 6,
          .max_pixels = 12 * 28 * 28,
          .buckets = {{64, 64}, {48, 80}, {80, 48}, {40, 96}, {96, 40}}};
}

}  // namespace

TEST_CASE("oracle images: LLaVA-NeXT grids and token counts") {
  const Json anyres = oracle().at("anyres");
  Preparation p{.geometry = Geometry::kAnyRes, .side = anyres["tile"], .patch = anyres["patch"]};
  p.grid_points = points_of(anyres["pinpoints_hw"]);
  for (const Json& c : anyres["cases"]) {
    const Size in{c["hw"][1], c["hw"][0]};
    CAPTURE(c.dump());
    CHECK(best_grid(in, p.grid_points) == Size{c["best_hw"][1], c["best_hw"][0]});
    CHECK(shape_of(in, p).tokens == c["tokens"].get<int>());
  }
}

TEST_CASE("oracle images: LLaVA-NeXT tiles equal the slow processor's to the bit") {
  const OracleTensors tensors;
  const Json tiles = oracle().at("anyres_tiles");
  Preparation p{.geometry = Geometry::kAnyRes, .side = tiles["tile"]};
  p.grid_points = points_of(tiles["pinpoints_hw"]);
  for (const auto& [name, want] : tiles["pictures"].items()) {
    CAPTURE(name);
    const Image in = tensors.picture(name + "/source");
    CHECK(shape_of({in.width, in.height}, p).tiles == want["tiles"].get<int>());
    const Image out = prepare_tiles(in, p);
    const auto bytes = tensors.bytes(name + "/anyres_tiles");
    CHECK(std::string_view(reinterpret_cast<const char*>(out.rgb.data()), out.rgb.size()) == bytes);
  }
}

TEST_CASE("C14: token counts of tiled pictures, height and width not swapped") {
  Preparation p{.geometry = Geometry::kAnyRes, .side = 336};
  p.grid_points = {{672, 336}, {336, 672}, {672, 672}, {336, 1008}, {1008, 336}};
  struct Case {
    int32_t height, width, tokens;
  };
  for (const auto& [height, width, tokens] :
       {Case{480, 640, 2340}, Case{640, 480, 2352}, Case{336, 336, 1176}, Case{900, 400, 1926},
        Case{400, 900, 1896}, Case{1000, 1000, 2928}, Case{300, 1000, 2182},
        Case{333, 500, 1464}}) {
    CAPTURE(height);
    CAPTURE(width);
    CHECK(shape_of({width, height}, p).tokens == tokens);
  }
}

TEST_CASE("prepare_tiles: equals Pillow in InternVL's, Qwen's, ADM's and PixArt's recipes") {
  const Json table = parse_json(fixture("image/geometry_golden.json"), "golden");
  CHECK(table["cases"].size() == 52);
  for (const Json& c : table["cases"]) {
    CAPTURE(c.dump());
    const Image in = golden_picture(c[1], c[2], c[3]);
    const Preparation p = golden_preparation(c[0]);
    const PictureShape shape = shape_of({in.width, in.height}, p);
    CHECK(shape.tile == Size{c[4], c[5]});
    CHECK(shape.tiles == c[6].get<int>());
    CHECK(shape.original == Size{in.width, in.height});
    const Image out = prepare_tiles(in, p);
    CHECK(out.height == shape.tiles * shape.tile.height);
    CHECK(crc32(0, out.rgb.data(), static_cast<uInt>(out.rgb.size())) == c[7].get<uint32_t>());
  }
}

TEST_CASE("shape_of: tokens of every geometry") {
  CHECK(shape_of({500, 300}, {.side = 336}).tokens == 576);
  CHECK(shape_of({500, 300}, {.geometry = Geometry::kQwen, .merge = 2}).tokens == 18 * 11);
  const PictureShape internvl =
      shape_of({900, 460}, {.geometry = Geometry::kInternVl, .side = 448, .merge = 2});
  CHECK(internvl.columns == 2);
  CHECK(internvl.rows == 1);
  CHECK(internvl.tiles == 3);
  CHECK(internvl.tokens == 3 * 256);
  const PictureShape bucket =
      shape_of({300, 500},
               {.geometry = Geometry::kBucket, .patch = 16, .buckets = {{512, 512}, {384, 640}}});
  CHECK(bucket.tile == Size{384, 640});
  CHECK(bucket.tokens == 24 * 40);
}

TEST_CASE("smart_size: sides are multiples, the area stays in its range where it can") {
  for (const Size in : {Size{1, 1}, {10, 1500}, {4000, 3000}, {28, 28}, {42, 70}, {5, 5}}) {
    const Size out = smart_size(in, {});
    CAPTURE(in.width);
    CHECK(out.width % 28 == 0);
    CHECK(out.height % 28 == 0);
    CHECK((out.width > 0 && out.height > 0));
    CHECK(int64_t{out.width} * out.height >= 56 * 56);
    CHECK(int64_t{out.width} * out.height <= 1280 * 28 * 28);
  }
  CHECK(smart_size({42, 70}, {}) == Size{56, 56});  // 1.5 and 2.5 round to even
}

TEST_CASE("buckets: the picture covers its bucket, offsets round half to even") {
  CHECK(cover_size({400, 300}, {64, 64}) == Size{85, 64});
  CHECK(even_centre_crop({85, 64}, {64, 64}) == Box{10, 0, 64, 64});  // 10.5 -> 10
  CHECK(even_centre_crop({67, 64}, {64, 64}) == Box{2, 0, 64, 64});   // 1.5 -> 2
  for (int32_t w = 1; w < 60; w += 7) {
    for (int32_t h = 1; h < 60; h += 5) {
      const Size covering = cover_size({w, h}, {40, 24});
      CHECK(covering.width >= 40);
      CHECK(covering.height >= 24);
    }
  }
}

TEST_CASE("C23: every picture goes to the bucket of the nearest ratio and is scaled to cover it") {
  const std::vector<Size> buckets = {{1024, 1024}, {1152, 896}, {896, 1152},
                                     {1216, 832},  {832, 1216}, {1344, 768},
                                     {768, 1344},  {1536, 640}, {640, 1536}};
  struct Row {
    Size in, bucket, scaled;
    int32_t left, top;
  };
  const std::vector<Row> rows = {{{1050, 1080}, {1024, 1024}, {1024, 1053}, 0, 14},
                                 {{3072, 3000}, {1024, 1024}, {1049, 1024}, 12, 0},
                                 {{4000, 3000}, {1152, 896}, {1195, 896}, 21, 0},
                                 {{3000, 4000}, {896, 1152}, {896, 1195}, 0, 21},
                                 {{1920, 1080}, {1344, 768}, {1365, 768}, 10, 0},
                                 {{512, 768}, {832, 1216}, {832, 1248}, 0, 16},
                                 {{3000, 1000}, {1536, 640}, {1920, 640}, 192, 0},
                                 {{2560, 1080}, {1536, 640}, {1536, 648}, 0, 4}};
  for (const Row& row : rows) {
    CAPTURE(row.in.width);
    CHECK(nearest_bucket(row.in, buckets) == row.bucket);
    const Size scaled = cover_size(row.in, row.bucket);
    CHECK(std::abs(scaled.width - row.scaled.width) <= 1);
    CHECK(std::abs(scaled.height - row.scaled.height) <= 1);
    const Box crop = even_centre_crop(scaled, row.bucket);
    CHECK(std::abs(crop.left - row.left) <= 1);
    CHECK(std::abs(crop.top - row.top) <= 1);
  }
}

TEST_CASE("decode_prepared: tiles of a file equal tiles of its picture") {
  const Image picture = noise_picture(150, 90, 6);
  const std::string file = encode_png(picture);
  for (const std::string geometry : {"adm", "internvl", "qwen", "bucket"}) {
    CAPTURE(geometry);
    const auto decoded = decode_prepared(as_bytes(file), golden_preparation(geometry));
    REQUIRE(decoded.ok());
    CHECK(decoded->image == prepare_tiles(picture, golden_preparation(geometry)));
  }
}

TEST_CASE("scaled_grid: above 1.1 times the side of the most tiles a grid shrinks to them") {
  CHECK(scaled_grid({81, 54}, 27, 9) == Size{81, 54});    // fewer patches than 9 tiles have
  CHECK(scaled_grid({162, 162}, 27, 9) == Size{81, 81});  // ratio 2
  CHECK(scaled_grid({162, 90}, 27, 9) == Size{108, 60});  // 1.4907: 108.7, 60.4
  CHECK(scaled_grid({89, 89}, 27, 9) == Size{89, 89});    // 1.0988
  // 1.1111...: the quotient rounds to 81, Python's 90 // 1.1111... is 80.
  CHECK(scaled_grid({90, 90}, 27, 9) == Size{80, 80});
  CHECK(scaled_grid({162, 162}, 27, 0) == Size{162, 162});
}

TEST_CASE("unpadded_grid: where a picture lies on the patches of its tiles") {
  CHECK(unpadded_grid({100, 40}, 4, {3, 1}) == Box{1, 0, 10, 4});
  CHECK(unpadded_grid({100, 20}, 4, {3, 1}) == Box{0, 1, 12, 2});
  CHECK(unpadded_grid({33, 90}, 4, {1, 2}) == Box{1, 0, 2, 8});
  CHECK(anyres_tokens({60, 60}, 4, {2, 2}, 2) == 16 + 5 * 6);
  CHECK(anyres_tokens({60, 60}, 4, {2, 2}) == 16 + 8 * 9);
}
