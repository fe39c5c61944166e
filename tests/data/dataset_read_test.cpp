#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/data/collate.h"
#include "lib/data/dataset.h"
#include "lib/data/loader.h"
#include "lib/data/row_marks.h"
#include "lib/data/shard.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

constexpr size_t kPictureBytes = size_t{3} * kSide * kSide;

/// Changes the last byte of a row's record in the file itself, as a bad disk would.
void damage(const Dataset& set, uint64_t row) {
  const RowPlace place = set.index().place(row);
  const auto path = set.directory() / set.manifest().shards[place.shard].file.file;
  const int fd = open(path.c_str(), O_RDWR);
  REQUIRE(fd >= 0);
  char byte = 0;
  const auto at = static_cast<off_t>(place.offset + place.bytes - 1);
  REQUIRE(pread(fd, &byte, 1, at) == 1);
  byte = static_cast<char>(byte ^ 1);
  REQUIRE(pwrite(fd, &byte, 1, at) == 1);
  close(fd);
}

/// Writes a payload that no decoder takes, with its right checksum, over a row's record in `file`.
void plant_nonsense(const Dataset& set, uint64_t row, const fs::path& file) {
  const RowPlace place = set.index().place(row);
  const std::string record =
      frame_record(row, std::string(static_cast<size_t>(place.bytes - kRecordHeadBytes), '\xff'));
  const int fd = open(file.c_str(), O_WRONLY);
  REQUIRE(fd >= 0);
  REQUIRE(pwrite(fd, record.data(), record.size(), static_cast<off_t>(place.offset)) ==
          static_cast<ssize_t>(record.size()));
  close(fd);
}

}  // namespace

TEST_CASE("read_texts: the samples without pixels, whatever became of their pictures") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 20, 8);
  const auto set = Dataset::open(dir / "set");
  const std::vector<uint32_t> rows = {13, 3, 4, 19, 0, 3};
  damage(*set, 3);  // its picture's last byte
  const auto texts = set->read_texts(rows);
  REQUIRE(texts.size() == rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    REQUIRE(texts[i].ok());
    CHECK(texts[i]->text == tiny_sample(rows[i]).text);
    CHECK(texts[i]->pixels.empty());
  }
  CHECK(!set->read(3).ok());
  plant_nonsense(*set, 4, set->directory() / set->manifest().shards[0].file.file);
  const uint32_t nonsense = 4;
  CHECK(!set->read_texts({&nonsense, 1}).front().ok());
}

TEST_CASE("read_pack: rows in any order give their samples, pixels one after another") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 20, 8);
  const auto set = Dataset::open(dir / "set");
  const std::vector<uint32_t> rows = {13, 3, 4, 5, 19, 0, 3};
  PixelVector pixels;
  const auto samples = set->read_pack(rows, pixels);
  REQUIRE(samples.size() == rows.size());
  std::vector<uint8_t> expected;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Sample whole = tiny_sample(rows[i]);
    REQUIRE(samples[i].ok());
    CHECK(samples[i]->text == whole.text);
    CHECK(samples[i]->pixels.empty());
    expected.insert(expected.end(), whole.pixels.begin(), whole.pixels.end());
  }
  CHECK(std::ranges::equal(pixels, expected));
}

TEST_CASE("read_pack: a damaged row adds no pixels, its neighbours stand") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 8);
  const auto set = Dataset::open(dir / "set");
  damage(*set, 3);
  PixelVector pixels;
  const std::vector<uint32_t> rows = {1, 3, 5};
  const auto samples = set->read_pack(rows, pixels);
  CHECK(samples[0].ok());
  CHECK(samples[1].failure().kind == "checksum");
  CHECK(samples[2].ok());
  REQUIRE(pixels.size() == 2 * kPictureBytes);
  CHECK(pixels.front() == 1);
  CHECK(pixels.back() == 5);
}

TEST_CASE("read_pack: a sample that is bad in the store too does not cost the cache its copy") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 8, 8);
  const auto set = Dataset::open(dir / "set");
  set->use_cache({.tiers = {{dir / "cache", uint64_t{1} << 20}}});
  auto& cache = const_cast<NodeCache&>(*set->cache());
  cache.expect(0, {{0}});
  REQUIRE(cache.settle(30));
  plant_nonsense(*set, 3, dir / "set" / set->manifest().shards[0].file.file);
  for (const auto& entry : fs::directory_iterator(dir / "cache/files"))
    plant_nonsense(*set, 3, entry.path());
  for (int times = 0; times < 2; ++times) CHECK(set->read(3).failure().kind == "corrupt");
  CHECK(set->read(4).ok());
  CHECK(cache.counts().damaged == 0);
  CHECK(cache.find(0));
}

TEST_CASE("assemble: the stand-in of a damaged row is black in its place") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 8);
  const auto set = Dataset::open(dir / "set");
  damage(*set, 3);
  const auto sizes = set->sizes();
  Pack pack{.samples = {1, 3, 5}};
  for (const uint32_t row : pack.samples) {
    pack.tokens += sizes[row].tokens;
    pack.images += sizes[row].images;
  }
  const Assembled assembled = assemble(*set, sizes, pack);
  REQUIRE(assembled.bad.size() == 1);
  REQUIRE(assembled.batch.pixels.size() == 3 * kPictureBytes);
  CHECK(assembled.batch.pixels[0] == 1);
  CHECK(assembled.batch.pixels[kPictureBytes] == 0);
  CHECK(assembled.batch.pixels[2 * kPictureBytes] == 5);
}

TEST_CASE("verify_reads: every read finds damage, the first one only what was there by then") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 8);
  for (const VerifyReads when : {VerifyReads::kEvery, VerifyReads::kFirst}) {
    const auto set = Dataset::open(dir / "set");
    set->verify_reads(when);
    damage(*set, 5);  // a pixel, which nothing but the checksum sees
    CHECK(set->read(5).failure().kind == "checksum");
    CHECK(set->read(5).failure().kind == "checksum");
    damage(*set, 5);  // as it was
    CHECK(set->read(5).ok());
    damage(*set, 5);
    CHECK(set->read(5).ok() == (when == VerifyReads::kFirst));
    damage(*set, 5);
  }
}

TEST_CASE("read: any one byte of a record flipped is found at the read, and no pixel of it stays") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 8);
  const auto set = Dataset::open(dir / "set");
  const RowPlace place = set->index().place(3);
  const auto path = dir / "set" / set->manifest().shards[place.shard].file.file;
  const std::string whole = mm::read_file(path);
  const int fd = open(path.c_str(), O_RDWR);
  REQUIRE(fd >= 0);
  for (uint64_t i = 0; i < place.bytes; ++i) {
    CAPTURE(i);
    const auto at = static_cast<off_t>(place.offset + i);
    const char wrong = static_cast<char>(whole[static_cast<size_t>(at)] ^ (1 << i % 8));
    REQUIRE(pwrite(fd, &wrong, 1, at) == 1);
    PixelVector pixels;
    const std::vector<uint32_t> rows = {3, 5};
    const auto samples = set->read_pack(rows, pixels);
    CHECK_FALSE(samples[0].ok());
    if (!samples[0].ok()) CHECK(samples[0].failure().kind == (i < 4 ? "length" : "checksum"));
    CHECK(samples[1].ok());
    CHECK(pixels.size() == kPictureBytes);
    REQUIRE(pwrite(fd, &whole[static_cast<size_t>(at)], 1, at) == 1);
  }
  close(fd);
  CHECK(set->read(3).ok());
}

TEST_CASE("read: rows of a shard that was cut after it was opened are bad, there is no signal") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 400, 400);
  const auto set = Dataset::open(dir / "set");
  REQUIRE(set->manifest().shards[0].file.bytes > 4 * 4096);  // so that whole pages go
  CHECK(set->read(0).ok());
  fs::resize_file(dir / "set/shard-00000.mms", 100);
  const auto lost = set->read(399);
  REQUIRE(!lost.ok());
  CHECK(lost.failure().kind == "corrupt");
  CHECK(lost.failure().message.find("truncated") != std::string::npos);
  // What is left of the last page reads as zeros.
  CHECK(!set->read(7).ok());
}

TEST_CASE("loader: pixels of batches that are gone hold the next ones") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 16);
  const auto set = Dataset::open(dir / "set");
  MicroBatch kept;
  {
    Loader loader(
        *set,
        {.plan = {
             .seed = 1, .sequence_length = 32, .packs_per_step = 16, .packing = Packing::kNone}});
    for (int step = 0; step < 3; ++step) {
      LoaderStep now = loader.next();
      for (MicroBatch& batch : now.micro_batches) {
        if (batch.images > 0) kept = std::move(batch);
      }
    }
  }
  // A batch outlives its loader.
  CHECK(kept.pixels.size() == kPictureBytes);
  CHECK(kept.pixels[0] == kept.sample_ids.at(0));
}

TEST_CASE("row marks: a bit a row") {
  RowMarks marks(130);
  for (const uint64_t row : {0, 63, 64, 129}) {
    CHECK(!marks.test(row));
    marks.set(row);
    CHECK(marks.test(row));
  }
  CHECK(!marks.test(1));
  CHECK(!marks.test(65));
}
