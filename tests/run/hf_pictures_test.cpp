#include "lib/run/hf_pictures.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

using namespace mm::run;
using mm::Json;
using mm::test::message_of;
using mm::test::TempDir;

namespace {

HfPictures read(const Json& json, const char* name = "preprocessor_config.json") {
  const TempDir dir;
  mm::write_file_atomic(dir / name, json.dump());
  return read_hf_pictures(dir.path());
}

std::string refusal(const Json& json) {
  return message_of<mm::DataError>([&] { (void)read(json); });
}

}  // namespace

TEST_CASE("CLIP's preprocessing in the published spelling and in transformers 5's nested one") {
  const Json old{{"do_center_crop", true},
                 {"crop_size", 336},
                 {"size", 336},
                 {"resample", 3},
                 {"image_mean", {0.1, 0.2, 0.3}},
                 {"image_std", {0.4, 0.5, 0.6}}};
  const Json fresh{{"crop_size", {{"height", 336}, {"width", 336}}},
                   {"size", {{"shortest_edge", 336}}},
                   {"resample", 3},
                   {"rescale_factor", 0.00392156862745098},
                   {"image_mean", {0.1, 0.2, 0.3}},
                   {"image_std", {0.4, 0.5, 0.6}}};
  for (const HfPictures& p :
       {read(old), read(fresh), read({{"image_processor", fresh}}, "processor_config.json")}) {
    CHECK(p.geometry == "crop");
    CHECK(p.filter == "bicubic");
    CHECK(p.side == 336);
    CHECK(p.mean == std::vector<double>{0.1, 0.2, 0.3});
    CHECK(p.std == std::vector<double>{0.4, 0.5, 0.6});
  }
}

TEST_CASE("padding, squashing and filters") {
  CHECK(read({{"do_pad", true}, {"size", {{"shortest_edge", 28}}}, {"crop_size", 28}}).geometry ==
        "pad");
  const HfPictures siglip = read({{"size", {{"height", 384}, {"width", 384}}}, {"resample", 2}});
  CHECK(siglip.geometry == "squash");
  CHECK(siglip.filter == "bilinear");
  CHECK(siglip.side == 384);
}

TEST_CASE("what would be prepared in another way is refused by file and key") {
  CHECK(refusal({{"size", {{"height", 2}, {"width", 3}}}}).find("\"size\" is") !=
        std::string::npos);
  CHECK(refusal({{"size", 32}, {"crop_size", 28}}).find("crop_size") != std::string::npos);
  CHECK(refusal({{"size", {{"shortest_edge", 32}}}}).find("a centre crop") != std::string::npos);
  CHECK(refusal({{"size", 32}, {"crop_size", 32}, {"do_normalize", false}}).find("do_normalize") !=
        std::string::npos);
  CHECK(refusal({{"size", 32}, {"crop_size", 32}, {"rescale_factor", 1}}).find("1 / 255") !=
        std::string::npos);
  CHECK(refusal({{"size", 32}, {"crop_size", 32}, {"resample", 9}}).find("resample") !=
        std::string::npos);
  CHECK(refusal({{"size", 32}, {"crop_size", 32}, {"image_mean", {1, 2}}}).find("three numbers") !=
        std::string::npos);
  CHECK(refusal({{"size", 0}, {"crop_size", 0}}).find("1 to 16384") != std::string::npos);
  const TempDir empty;
  CHECK_THROWS_AS((void)read_hf_pictures(empty.path()), mm::IoError);
}

TEST_CASE("read_hf_norm: the numbers alone, from files that ask for what no set is packed with") {
  const auto norm = [](const Json& json, const char* name = "preprocessor_config.json") {
    const TempDir dir;
    mm::write_file_atomic(dir / name, json.dump());
    return read_hf_norm(dir.path());
  };
  const Json half{{"image_mean", {0.5, 0.5, 0.5}}, {"size", {{"height", 2}, {"width", 3}}}};
  for (const auto& read :
       {norm(half), norm({{"image_processor", half}}, "processor_config.json")}) {
    REQUIRE(read.has_value());
    CHECK(read->mean == std::vector<double>{0.5, 0.5, 0.5});
    CHECK(read->std == HfPictures().std);
  }
  CHECK_FALSE(norm({{"size", 4}}).has_value());
  CHECK_FALSE(norm(half, "config.json").has_value());
  const Json flat{{"image_std", {1, 1, 0}}};
  CHECK(message_of<mm::DataError>([&] { (void)norm(flat); }).find("above 0") != std::string::npos);
}

TEST_CASE("what is written reads back the same") {
  for (const char* geometry : {"crop", "pad", "squash"}) {
    for (const char* filter : {"bicubic", "bilinear", "lanczos"}) {
      const HfPictures p{.geometry = geometry,
                         .filter = filter,
                         .side = 40,
                         .mean = {0.5, 0.25, 0.125},
                         .std = {1, 2, 3}};
      const HfPictures back =
          read(to_json(p, p.geometry == "squash" ? HfProcessor::kSiglip : HfProcessor::kClip));
      CHECK(back.geometry == p.geometry);
      CHECK(back.filter == p.filter);
      CHECK(back.side == p.side);
      CHECK(back.mean == p.mean);
      CHECK(back.std == p.std);
    }
  }
}

TEST_CASE("tiles and pictures of any size: published files, and what is written reads back") {
  const Json tiles{{"size", {{"shortest_edge", 28}}},
                   {"crop_size", 28},
                   {"do_pad", true},
                   {"do_center_crop", true},
                   {"image_grid_pinpoints", {{28, 56}, {56, 28}}}};
  const HfPictures next = read(tiles);
  CHECK(next.geometry == "anyres");
  CHECK(next.side == 28);
  CHECK(next.grid_points == std::vector<std::vector<int64_t>>{{28, 56}, {56, 28}});
  const HfPictures qwen = read({{"min_pixels", 3136}, {"max_pixels", 12845056}, {"merge_size", 2}});
  CHECK(qwen.geometry == "qwen");
  CHECK(qwen.patch == 14);
  CHECK(qwen.max_pixels == 12845056);
  CHECK(read({{"size", {{"shortest_edge", 784}, {"longest_edge", 9000}}}, {"merge_size", 2}})
            .max_pixels == 9000);
  for (const HfProcessor processor : {HfProcessor::kLlavaNext, HfProcessor::kLlavaOnevision}) {
    const HfPictures back = read(to_json(next, processor));
    CHECK(back.geometry == "anyres");
    CHECK(back.side == next.side);
    CHECK(back.grid_points == next.grid_points);
  }
  const HfPictures back = read(to_json(qwen, HfProcessor::kQwen2Vl));
  CHECK(back.merge == 2);
  CHECK(back.min_pixels == 3136);
  CHECK(back.max_pixels == qwen.max_pixels);
}

TEST_CASE("tiles that are cropped and areas that are none are refused by key") {
  const Json grid = Json::array({Json::array({28, 56})});
  CHECK(refusal({{"size", 28}, {"crop_size", 24}, {"image_grid_pinpoints", grid}})
            .find("crop_size") != std::string::npos);
  CHECK(refusal({{"size", 28}, {"image_grid_pinpoints", Json::array()}})
            .find("a list of [height, width]") != std::string::npos);
  CHECK(refusal({{"size", 28}, {"image_grid_pinpoints", {{28, -1}}}}).find("1 to 16384") !=
        std::string::npos);
  CHECK(refusal({{"merge_size", 0}}).find("merge_size") != std::string::npos);
  CHECK(refusal({{"merge_size", 64}, {"patch_size", 256}}).find("4096 pixels a side") !=
        std::string::npos);
  const int64_t most = int64_t{1} << 28, least = most >> 4;
  const auto areas = [&](int64_t area) {
    return Json{{"merge_size", 2}, {"min_pixels", area}, {"max_pixels", most}};
  };
  CHECK(read(areas(least)).min_pixels == least);
  CHECK(refusal(areas(least + 1)).find("\"min_pixels\" is 16777217; expected 1 to 16777216") !=
        std::string::npos);
  CHECK(refusal({{"merge_size", 2}, {"min_pixels", 9}, {"max_pixels", 8}}).find("min_pixels") !=
        std::string::npos);
}
