#include "lib/data/sample.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

DecodedSample decode(const std::string& bytes, uint32_t tokens) {
  return decode_sample(std::as_bytes(std::span(bytes)), tokens);
}

/// Long and repetitive enough for zstd to win.
SampleText long_text() {
  SampleText text;
  text.tokens.assign(500, 7);
  text.trainable = {{3, 9}, {100, 500}};
  text.image_begin = {1, 20};
  return text;
}

}  // namespace

TEST_CASE("sample: decoding gives back text and pictures, with and without compression") {
  const std::string pixels(2 * 3 * 3, 'x');
  for (const SampleText& text : {long_text(), SampleText{{1, 2, 3}, {{1, 3}}, {}}, SampleText{}}) {
    std::vector<StoredPicture> pictures;
    for (size_t i = 0; i < text.image_begin.size(); ++i)
      pictures.push_back({PictureCodec::kRaw, 2, 3, pixels});
    if (!pictures.empty()) pictures.back() = {PictureCodec::kJpeg, 2, 3, "not really"};
    const std::string bytes = encode_sample(text, pictures);
    const DecodedSample sample = decode(bytes, static_cast<uint32_t>(text.tokens.size()));
    CHECK(sample.text == text);
    REQUIRE(sample.pictures.size() == pictures.size());
    for (size_t i = 0; i < pictures.size(); ++i) {
      CHECK(sample.pictures[i].codec == pictures[i].codec);
      CHECK(sample.pictures[i].bytes == pictures[i].bytes);
    }
  }
  CHECK(encode_sample(SampleText{std::vector<int32_t>(500, 7), {}, {}}, {}).size() < 200);
}

TEST_CASE("sample: labels are the tokens of the trainable spans") {
  const SampleText text{{5, 6, 7, 8}, {{1, 2}, {3, 4}}, {}};
  CHECK(labels_of(text) == std::vector<int32_t>{-100, 6, -100, 8});
  CHECK(size_of(text).targets == 2);
}

TEST_CASE(
    "sample: every cut, every flipped byte and every surplus is refused or harmless, never a "
    "crash") {
  const Sample tiny = tiny_sample(3);
  const std::string bytes = encode_tiny(tiny);
  const auto tokens = static_cast<uint32_t>(tiny.text.tokens.size());
  for (size_t length = 0; length < bytes.size(); ++length) {
    CHECK_THROWS_AS(decode(bytes.substr(0, length), tokens), mm::DataError);
  }
  CHECK_THROWS_AS(decode(bytes + "x", tokens), mm::DataError);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const unsigned char flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      try {
        decode(damaged, tokens);
      } catch (const mm::DataError&) {
        continue;
      }
    }
  }
  CHECK_THROWS_WITH_AS(decode(bytes, tokens + 1), doctest::Contains("the index says"),
                       mm::DataError);
}

TEST_CASE("sample: spans and pictures out of order or past the end are refused") {
  const std::vector<int32_t> tokens(10, 1);
  const std::vector<std::vector<TokenSpan>> bad_spans = {
      {{5, 5}}, {{5, 4}}, {{0, 11}}, {{4, 6}, {5, 7}}, {{4, 6}, {1, 2}}};
  for (const auto& spans : bad_spans) {
    CHECK_THROWS_AS(decode(encode_sample({tokens, spans, {}}, {}), 10), mm::DataError);
  }
  const std::vector<StoredPicture> two(2, {PictureCodec::kJpeg, 1, 1, ""});
  for (const auto& begins : std::vector<std::vector<uint32_t>>{{1, 1}, {2, 1}, {1, 10}}) {
    CHECK_THROWS_AS(decode(encode_sample({tokens, {}, begins}, two), 10), mm::DataError);
  }
}

TEST_CASE("sample: a header that claims much is refused before memory is taken") {
  std::string bytes =
      encode_sample(long_text(), std::vector<StoredPicture>(2, {PictureCodec::kJpeg, 1, 1, ""}));
  bytes.replace(0, 4, "\xff\xff\xff\x7f");
  CHECK_THROWS_WITH_AS(decode(bytes, 500), doctest::Contains("claims"), mm::DataError);
}

TEST_CASE("sample: a picture's grid comes back, a picture without one is stored as before") {
  const PictureGrid grid{.width = 2,
                         .height = 3,
                         .tiles = 5,
                         .rows = 2,
                         .columns = 2,
                         .tokens = 9,
                         .original_width = 640,
                         .original_height = 480};
  const std::string pixels(5 * 2 * 3 * 3, 'p');
  const SampleText text{std::vector<int32_t>(12, 7), {{10, 12}}, {0}};
  const std::string bytes =
      encode_sample(text, std::vector<StoredPicture>{{PictureCodec::kRaw, 2, 3, pixels, grid}});
  const DecodedSample sample = decode(bytes, 12);
  REQUIRE(sample.pictures[0].grid.has_value());
  CHECK(*sample.pictures[0].grid == grid);
  CHECK(sample.pictures[0].bytes == pixels);
  CHECK(size_of(text, std::vector<PictureGrid>{grid, grid}).images == 10);
  const std::string plain = encode_sample(
      text,
      std::vector<StoredPicture>{{PictureCodec::kRaw, 2, 3, std::string_view(pixels).substr(72)}});
  // codec, 0, width, height, 0, bytes: the head of the first version.
  CHECK(plain.substr(plain.size() - 18 - 12, 12) == std::string("\0\0\2\0\3\0\0\0\x12\0\0\0", 12));
}

TEST_CASE("sample: grids that contradict their tiles or bytes are refused") {
  const PictureGrid grid{.width = 2, .height = 3, .tiles = 5, .rows = 2, .columns = 2, .tokens = 9};
  const SampleText text{std::vector<int32_t>(12, 7), {{10, 12}}, {0}};
  const std::string pixels(200, 'p');
  const auto encoded = [&](const PictureGrid& g, size_t bytes) {
    return encode_sample(
        text, std::vector<StoredPicture>{
                  {PictureCodec::kRaw, 2, 3, std::string_view(pixels).substr(0, bytes), g}});
  };
  PictureGrid other = grid;
  other.tiles = 7;
  CHECK_THROWS_WITH_AS(decode(encoded(other, 126), 12), doctest::Contains("7 tiles"),
                       mm::DataError);
  CHECK_THROWS_WITH_AS(decode(encoded(grid, 72), 12), doctest::Contains("expected 90"),
                       mm::DataError);
  const std::string good = encoded(grid, 90);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x81);
    try {
      decode(damaged, 12);
    } catch (const mm::DataError&) {
      continue;
    }
  }
}

TEST_CASE("sample: files of tiles are split as they were joined, damage is refused") {
  const std::vector<std::string> files = {"one", "", "three"};
  const std::string joined = join_tiles(files);
  CHECK(split_tiles(joined, 3) == std::vector<std::string_view>{"one", "", "three"});
  CHECK(join_tiles(std::vector<std::string>{"alone"}) == "alone");
  CHECK(split_tiles("alone", 1) == std::vector<std::string_view>{"alone"});
  CHECK_THROWS_AS(split_tiles(joined, 2), mm::DataError);
  CHECK_THROWS_AS(split_tiles(joined, 4), mm::DataError);
  CHECK_THROWS_AS(split_tiles(std::string(4, '\xff'), 2), mm::DataError);
}
