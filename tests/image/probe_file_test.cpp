#include "lib/image/probe_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/image/fixtures.h"
#include "tests/image/made_files.h"

using namespace mm;
using namespace mm::image;
using namespace mm::image::testing;
namespace fs = std::filesystem;

namespace {

void check_same(const fs::path& path) {
  CAPTURE(path.string());
  const std::string content = read_file(path);
  const auto want = probe(as_bytes(content)), got = probe_file(path);
  REQUIRE(want.ok() == got.ok());
  if (!want.ok()) {
    CHECK(got.failure().message == want.failure().message);
    return;
  }
  CHECK(got->upright == want->upright);
  CHECK(got->orientation == want->orientation);
  CHECK(got->has_icc == want->has_icc);
}

}  // namespace

TEST_CASE("probe_file: equals probe of the whole content on every field picture") {
  for (const auto& [name, want] : field_expectations().at("files").items())
    check_same(fs::path(MM_TEST_DATA) / "field" / name);
}

TEST_CASE("probe_file: headers longer than its first read, and tags behind the pixels") {
  const fs::path directory = fs::temp_directory_path() / fmt::format("mm-probe-{}", getpid());
  fs::create_directories(directory);
  const std::string jpeg = fixture("field/exif_6.jpg");
  // Three segments of 60 KB in front of the EXIF segment.
  std::string far = jpeg;
  for (int i = 0; i < 3; ++i) far = insert(far, 2, jpeg_segment(0xE5, std::string(60000, 'x')));
  write_file_atomic(directory / "far.jpg", far);
  const std::string png = fixture("field/exif_6.png");
  const std::string late =
      insert(png, png.find("eXIf") - 4, png_chunk("tEXt", std::string(99999, 'a')));
  write_file_atomic(directory / "late.png", late);
  write_file_atomic(directory / "cut.jpg", far.substr(0, 70000));
  for (const char* name : {"far.jpg", "late.png", "cut.jpg"}) check_same(directory / name);
  CHECK(probe_file(directory / "far.jpg")->orientation == 6);
  CHECK(probe_file(directory / "late.png")->upright == Size{64, 96});
  CHECK(probe_file(directory / "cut.jpg").failure().kind == "truncated");
  fs::remove_all(directory);
}

TEST_CASE("probe_file: limits hold, a missing file is an IoError") {
  const fs::path thin = fs::path(MM_TEST_DATA) / "field/thin.png";
  CHECK(probe_file(thin, {.max_side = 399}).failure().kind == "too_large");
  CHECK_THROWS_AS((void)probe_file("/no/such/picture.png"), IoError);
}
