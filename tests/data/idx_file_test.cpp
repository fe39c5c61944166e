#include "lib/data/idx_file.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/data/dataset.h"
#include "lib/image/decode.h"
#include "tests/data/source_fuzz.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<char>(value >> static_cast<unsigned>(shift)));
  return bytes;
}

std::string idx(const std::vector<uint32_t>& sizes, const std::string& data, char type = 8) {
  std::string file("\0\0", 2);
  file.push_back(type);
  file.push_back(static_cast<char>(sizes.size()));
  for (const uint32_t size : sizes) file += big_endian(size);
  return file + data;
}

/// Three pictures of 2 x 4 (rows x columns) with labels 7 0 7.
void write_pair(const TempDir& dir) {
  std::string pixels;
  for (int i = 0; i < 24; ++i) pixels.push_back(static_cast<char>(10 * i));
  mm::write_file_atomic(dir / "t-images-idx3-ubyte", idx({3, 2, 4}, pixels));
  mm::write_file_atomic(dir / "t-labels-idx1-ubyte", idx({3}, std::string("\7\0\7", 3)));
}

}  // namespace

TEST_CASE("idx: items come in order, their sizes from the header") {
  const TempDir dir;
  write_pair(dir);
  IdxFile images(dir / "t-images-idx3-ubyte", 3);
  CHECK(images.items() == 3);
  CHECK(images.item_sizes()[0] == 2);
  CHECK(images.item_sizes()[1] == 4);
  std::vector<uint8_t> item;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(images.next(item));
    CHECK(item.size() == 8);
    CHECK(item[1] == 80 * i + 10);
  }
  CHECK(!images.next(item));
}

TEST_CASE("idx: headers that lie are refused before memory is taken for them") {
  const TempDir dir;
  const auto refused = [&](const std::string& file, size_t dimensions) {
    mm::write_file_atomic(dir / "f", file);
    try {
      IdxFile in(dir / "f", dimensions);
      std::vector<uint8_t> item;
      while (in.next(item)) {
      }
    } catch (const mm::DataError&) {
      return true;
    }
    return false;
  };
  CHECK(refused("", 1));
  CHECK(refused("\x7f", 1));
  CHECK(refused("some text", 1));
  CHECK(refused(idx({3}, "abc", 0x0d), 1));
  CHECK(refused(idx({3}, "abc"), 3));
  CHECK(refused(idx({3}, "ab"), 1));
  CHECK(refused(idx({1, 2, 3}, "").substr(0, 10), 3));
  CHECK(refused(idx({1, 0, 4}, ""), 3));
  CHECK(refused(idx({1, 0xffffffff, 0xffffffff}, "x"), 3));
  CHECK(refused(idx({0xffffffff, 100, 100}, "x"), 3));
  CHECK(!refused(idx({3}, "abc"), 1));
  CHECK(!refused(idx({0}, ""), 1));
}

TEST_CASE("idx: labels stand beside the pictures, under the same name") {
  CHECK(labels_beside("a/train-images-idx3-ubyte.gz") == "a/train-labels-idx1-ubyte.gz");
  CHECK(!labels_beside("a/train.idx"));
  CHECK(!labels_beside("a/images.idx"));
}

TEST_CASE("idx source: grey pictures as RGB with their labels, plain and gzip alike") {
  const TempDir dir;
  write_pair(dir);
  const auto gz =
      std::system(fmt::format("gzip -k '{0}' '{1}'", (dir / "t-images-idx3-ubyte").string(),
                              (dir / "t-labels-idx1-ubyte").string())
                      .c_str());
  REQUIRE(gz == 0);
  for (const char* name : {"t-images-idx3-ubyte", "t-images-idx3-ubyte.gz"}) {
    CHECK(sniff_source(dir / name) == SourceKind::kIdx);
    const auto source = open_source({.kind = SourceKind::kIdx, .path = dir / name});
    const auto item = source->next();
    REQUIRE(item);
    const auto& record = std::get<Record>(*item);
    CHECK(record.key == "t-images-idx3-ubyte/0");
    CHECK(record.label == "7");
    const auto picture = mm::image::decode(mm::image::as_bytes(*record.content(0)), {});
    REQUIRE(picture);
    CHECK(picture->image.width == 4);
    CHECK(picture->image.height == 2);
    CHECK(picture->image.rgb[3] == 10);
    CHECK(picture->image.rgb[5] == 10);
  }
}

TEST_CASE("idx source: packs with labels; the digits are the classes") {
  const TempDir dir;
  write_pair(dir);
  PackOptions options;
  options.source = {
      .kind = SourceKind::kIdx, .path = dir / "t-images-idx3-ubyte", .labels = "label"};
  options.pictures.geometry = "buckets";
  options.pictures.buckets = "4x4";
  const PackResult result = pack_dataset(options, {.output = dir / "set", .threads = 1});
  CHECK(result.manifest.counts.samples == 3);
  CHECK(result.manifest.tokenizer.vocab_size == 8);
  CHECK(result.manifest.bucketing["enlarged"] == 3);
  const auto set = Dataset::open(dir / "set");
  for (uint64_t row = 0; row < 3; ++row)
    CHECK(set->read(row)->text.tokens ==
          std::vector<int32_t>{set->index().row(row).source_row == 1 ? 0 : 7});
}

TEST_CASE("idx source: counts that differ and missing labels are named") {
  const TempDir dir;
  write_pair(dir);
  const SourceOptions options{.kind = SourceKind::kIdx, .path = dir / "t-images-idx3-ubyte"};
  mm::write_file_atomic(dir / "t-labels-idx1-ubyte", idx({2}, "ab"));
  CHECK_THROWS_WITH_AS(open_source(options), doctest::Contains("3 pictures, 2 labels"),
                       mm::DataError);
  std::filesystem::remove(dir / "t-labels-idx1-ubyte");
  CHECK_THROWS_WITH_AS(open_source(options), doctest::Contains("no labels beside it"),
                       mm::DataError);
}

TEST_CASE("fuzz: idx files") {
  const TempDir dir;
  write_pair(dir);
  const std::string seed = mm::read_file(dir / "t-images-idx3-ubyte");
  fuzz_source(dir, "t-images-idx3-ubyte", SourceKind::kIdx, seed, 500);
}
