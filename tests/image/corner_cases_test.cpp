#include <doctest/doctest.h>

#include <functional>

#include "lib/image/decode.h"
#include "lib/image/encode.h"
#include "tests/image/fixtures.h"
#include "tests/image/made_files.h"

using namespace mm;
using namespace mm::image;
using namespace std::string_view_literals;
using namespace mm::image::testing;

namespace {

// `kind` empty: the picture decodes, to the pixels of field/`same_as` if that is named, with `note`
// among its notes or its damage. Else it is refused with that kind and `note` in the message.
struct Corner {
  const char* name;
  std::function<std::string()> file;
  std::string kind, same_as, note;
};

std::string good_jpeg() { return fixture("field/exif_1.jpg"); }
std::string good_png() { return fixture("field/names/22.05.png"); }

// Changes the sample precision in the frame header.
std::string jpeg_of_bits(char bits) {
  std::string file = good_jpeg();
  file[file.find("\xFF\xC0") + 4] = bits;
  return file;
}

std::string jpeg_with_frame(char marker) {
  std::string file = good_jpeg();
  file[file.find("\xFF\xC0") + 1] = marker;
  return file;
}

const std::string kIcc = jpeg_segment(0xE2, "ICC_PROFILE\0\1\1profile"sv);
const std::string kMpf = jpeg_segment(0xE2, "MPF\0II*\0\x08\0\0\0"sv);

std::vector<Corner> corners() {
  return {
      {"progressive JPEG", [] { return fixture("field/progressive.jpg"); }, "", "progressive.jpg",
       ""},
      {"progressive JPEG, cut",
       [] {
         const std::string whole = fixture("field/progressive.jpg");
         return whole.substr(0, whole.size() * 2 / 3);
       },
       "truncated", "", "JPEG"},
      {"arithmetic JPEG", [] { return arithmetic_jpeg(noise_picture(40, 24, 1)); }, "", "", ""},
      {"12-bit JPEG", [] { return jpeg_of_bits(12); }, "unsupported_format", "", "12 bits"},
      {"lossless JPEG", [] { return jpeg_with_frame('\xC3'); }, "unsupported_format", "", "JPEG"},
      {"two pictures (MPO)", [] { return insert(good_jpeg(), 2, kMpf) + good_jpeg(); }, "",
       "exif_1.jpg", "first picture of several"},
      {"two JPEGs, no index", [] { return good_jpeg() + good_jpeg(); }, "", "exif_1.jpg",
       "trailing bytes: 1280"},
      {"a restart interval with bytes left over",
       [] {
         std::string file = fixture("field/restart.jpg");
         const size_t marker = file.find("\xFF\xD1");
         return insert(file, marker, "\x12\x34\x56");
       },
       "", "restart.jpg",
       "JPEG: parts of the picture are wrong: restart intervals with 3 bytes left over, 0 bad "
       "codes, "
       "0 early ends"},
      {"a restart interval cut short",
       [] {
         std::string file = fixture("field/restart.jpg");
         return file.erase(file.find("\xFF\xD1") - 12, 12);
       },
       "", "",
       "JPEG: parts of the picture are wrong: restart intervals with 0 bytes left over, 0 bad "
       "codes, "
       "1 early ends"},
      {"the last restart interval cut short",
       [] {
         std::string file = fixture("field/restart.jpg");
         return file.erase(file.rfind("\xFF\xD9") - 12, 12);
       },
       "truncated", "", "JPEG"},
      {"restart markers, no interval",
       [] {
         std::string file = fixture("field/restart.jpg");
         return file.erase(file.find("\xFF\xDD"), 6);
       },
       "truncated", "", "JPEG: Corrupt JPEG data: premature end of data segment"},
      {"a restart interval longer than the picture",
       [] {
         std::string file = fixture("field/restart.jpg");
         file[file.find("\xFF\xDD") + 4] = '\x7F';
         return file;
       },
       "truncated", "", "JPEG: Corrupt JPEG data: premature end of data segment"},
      {"a restart marker too many",
       [] {
         std::string file = fixture("field/restart.jpg");
         return insert(file, file.rfind("\xFF\xD9") - 12, "\xFF\xD7"sv);
       },
       "truncated", "", "JPEG: Corrupt JPEG data: premature end of data segment"},
      {"stray bytes between segments",
       [] { return insert(good_jpeg(), good_jpeg().find("\xFF\xDB"), "abc"); }, "", "exif_1.jpg",
       "JPEG: 3 stray bytes between segments"},
      {"a restart marker out of turn",
       [] {
         std::string file = fixture("field/restart.jpg");
         file[file.find("\xFF\xD1") + 1] = '\xD3';
         return file;
       },
       "corrupt", "", "JPEG"},
      {"padding before the end mark",
       [] {
         std::string file = good_jpeg();
         return insert(file, file.rfind("\xFF\xD9"), "\x20\x20");
       },
       "", "exif_1.jpg", ""},
      {"ICC profile in a JPEG", [] { return insert(good_jpeg(), 2, kIcc); }, "", "exif_1.jpg",
       "icc ignored"},
      {"ICC profile in a PNG",
       [] { return insert(good_png(), 33, png_chunk("iCCP", "x\0\0nothing"sv)); }, "",
       "names/22.05.png", "icc ignored"},
      {"gamma in a PNG", [] { return insert(good_png(), 33, png_chunk("gAMA", "\0\0\x27\x10"sv)); },
       "", "names/22.05.png", ""},
      {"damaged EXIF",
       [] { return insert(good_jpeg(), 2, jpeg_segment(0xE1, "Exif\0\0II*\0\xFF\xFF\xFF\xFF"sv)); },
       "", "exif_1.jpg", ""},
      {"a text chunk of 8 MB of zeros",
       [] { return insert(good_png(), 33, png_chunk("tEXt", std::string(8 << 20, '\0'))); }, "",
       "names/22.05.png", ""},
      {"animated PNG", [] { return fixture("field/animated.png"); }, "", "animated.png",
       "first picture of several"},
      {"animated GIF", [] { return fixture("field/animated.gif"); }, "", "animated.gif",
       "first picture of several"},
      {"HTML named .jpg", [] { return fixture("field/html_named.jpg"); }, "not_an_image", "", ""},
      {"no byte", [] { return std::string(); }, "empty", "", "0 bytes"},
      {"HEIC",
       [] {
         return std::string(
             "\0\0\0\x18"
             "ftypheic\0\0\0\0",
             16);
       },
       "unsupported_format", "", "HEIF"},
      {"AVIF",
       [] {
         return std::string(
             "\0\0\0\x1C"
             "ftypavif\0\0\0\0",
             16);
       },
       "unsupported_format", "", "AVIF"},
      {"JPEG XL", [] { return std::string("\xFF\x0A\0\0", 4); }, "unsupported_format", "",
       "JPEG XL"},
      {"TIFF", [] { return std::string("II*\0\x08\0\0\0", 8); }, "unsupported_format", "", "TIFF"},
      {"BMP", [] { return std::string("BM\x46\0\0\0\0\0\0\0\x36", 11); }, "unsupported_format", "",
       "BMP"},
      {"SVG", [] { return std::string("<?xml version=\"1.0\"?>\n<svg width=\"4\"/>"); },
       "unsupported_format", "", "SVG"},
      {"JPEG 2000", [] { return std::string("\xFF\x4F\xFF\x51\0", 5); }, "unsupported_format", "",
       "JPEG 2000"},
  };
}

void check_decoded(const Corner& corner, const Decoded& decoded) {
  if (!corner.same_as.empty()) {
    const std::string twin = fixture("field/" + corner.same_as);
    const auto want = decode(as_bytes(twin));
    REQUIRE(want.ok());
    CHECK(decoded.image == want->image);
  }
  if (corner.note.empty()) return;
  std::string all;
  for (const std::string& note : decoded.notes) all += note + "\n";
  for (const Failure& damage : decoded.damage) all += damage.message + "\n";
  CHECK_MESSAGE(all.find(corner.note + "\n") != std::string::npos, all);
}

}  // namespace

TEST_CASE("corner cases: each has the result that docs/formats.md states") {
  for (const Corner& corner : corners()) {
    const std::string case_name = corner.name;
    CAPTURE(case_name);
    const std::string file = corner.file();
    const auto decoded = decode(as_bytes(file));
    if (!corner.kind.empty()) {
      REQUIRE_FALSE(decoded.ok());
      CHECK(decoded.failure().kind == corner.kind);
      CHECK_MESSAGE(decoded.failure().message.find(corner.note) != std::string::npos,
                    decoded.failure().message);
      continue;
    }
    REQUIRE_MESSAGE(decoded.ok(), decoded.failure().message);
    check_decoded(corner, *decoded);
  }
}

TEST_CASE("corner cases: sides and aspect ratio have limits of their own") {
  const std::string thin = fixture("field/thin.png");  // 400 x 3
  CHECK(probe(as_bytes(thin)).ok());
  const auto too_thin = probe(as_bytes(thin), {.max_aspect = 100});
  CHECK(too_thin.failure().kind == "too_thin");
  CHECK(too_thin.failure().message.find("400 x 3") != std::string::npos);
  CHECK(probe(as_bytes(thin), {.max_aspect = 400.0 / 3}).ok());
  CHECK(probe(as_bytes(thin), {.min_side = 3}).ok());
  CHECK(probe(as_bytes(thin), {.min_side = 4}).failure().kind == "too_small");
}

TEST_CASE("corner cases: an arithmetic JPEG decodes like its Huffman twin") {
  const Image picture = noise_picture(40, 24, 1);
  const std::string arithmetic = arithmetic_jpeg(picture);
  const std::string huffman = encode_jpeg(picture, {.quality = 75});
  const auto a = decode(as_bytes(arithmetic)), b = decode(as_bytes(huffman));
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  CHECK(a->image == b->image);
}
