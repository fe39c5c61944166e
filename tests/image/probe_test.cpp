#include "lib/image/probe.h"

#include <doctest/doctest.h>

#include "lib/image/decode.h"
#include "lib/image/encode.h"
#include "tests/image/fixtures.h"

using namespace mm;
using namespace mm::image;
using namespace std::string_view_literals;
using mm::image::testing::fixture;

TEST_CASE("sniff: formats are told by their first bytes") {
  struct Case {
    std::string_view content;
    Format format;
  };
  for (const auto& [content, format] :
       {Case{"\xFF\xD8\xFF\xE0"sv, Format::kJpeg}, Case{"\x89PNG\r\n\x1A\n"sv, Format::kPng},
        Case{"GIF89a"sv, Format::kGif}, Case{"RIFF\1\2\3\4WEBPVP8 "sv, Format::kWebp},
        Case{"BM\1\2\3\4\0\0\0\0"sv, Format::kBmp}, Case{"II*\0"sv, Format::kTiff},
        Case{"\0\0\0\x1C"
             "ftypavif"sv,
             Format::kAvif},
        Case{"\0\0\0\x18"
             "ftypheic"sv,
             Format::kHeif},
        Case{"\xFF\x0A"sv, Format::kJpegXl}, Case{"<svg xmlns"sv, Format::kSvg},
        Case{"\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<svg/>"sv, Format::kSvg},
        Case{"<?xml version=\"1.0\"?>\n<html/>"sv, Format::kUnknown},
        Case{"BMW"sv, Format::kUnknown}, Case{""sv, Format::kUnknown},
        Case{"R"sv, Format::kUnknown}}) {
    CHECK(sniff(as_bytes(content)) == format);
  }
}

TEST_CASE("probe: text shows its first bytes, unprintable ones as numbers") {
  const auto header = probe(as_bytes("<!DOC\n\x01"sv));
  REQUIRE_FALSE(header.ok());
  CHECK(header.failure().kind == "not_an_image");
  CHECK(header.failure().message.find("<!DOC\\x0a\\x01") != std::string::npos);
}

TEST_CASE("probe: sizes agree with the decoder's for our own files") {
  for (const auto& [w, h] : {std::pair{1, 1}, {3, 500}, {640, 2}}) {
    const Image picture = mm::image::testing::noise_picture(w, h, 1);
    for (const std::string& file : {encode_png(picture), encode_jpeg(picture)}) {
      const auto header = probe(as_bytes(file));
      REQUIRE(header.ok());
      CHECK(header->stored == Size{w, h});
      CHECK(header->orientation == 1);
    }
  }
}

TEST_CASE("probe: a JPEG without a frame, with a bad length, and cut before its frame") {
  CHECK(probe(as_bytes("\xFF\xD8\xFF\xDA\0\2"sv)).failure().kind == "corrupt");
  CHECK(probe(as_bytes("\xFF\xD8\xFF\xE0\0\1"sv)).failure().kind == "corrupt");
  CHECK(probe(as_bytes("\xFF\xD8\xFF\xE0\0\x10"sv)).failure().kind == "truncated");
  CHECK(probe(as_bytes("\xFF\xD8\xFF\xC0\0\x0B\x08\0\0\0\x10\1"sv)).failure().kind ==
        "corrupt");  // height 0
}

TEST_CASE("probe: a PNG with side 0 or without IHDR is corrupt, a cut one truncated") {
  std::string file = encode_png(Image(4, 4));
  CHECK(probe(as_bytes(std::string_view(file).substr(0, 20))).failure().kind == "truncated");
  std::string zero = file;
  zero.replace(16, 4, "\0\0\0\0"sv);
  CHECK(probe(as_bytes(zero)).failure().kind == "corrupt");
  std::string other = file;
  other[12] = 'X';
  CHECK(probe(as_bytes(other)).failure().kind == "corrupt");
}
