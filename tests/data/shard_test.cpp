#include "lib/data/shard.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/data/shard_layout.h"
#include "lib/data/shard_pool.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

struct Written {
  TempDir dir;
  fs::path path = dir / "a.mms";
  std::vector<RecordPlace> places;
};

void write(Written& shard) {
  ShardWriter writer(shard.path, 99);
  for (const char* payload : {"first", "", "third payload"}) {
    shard.places.push_back(writer.append(shard.places.size() + 10, payload));
  }
  CHECK(!fs::exists(shard.path));
  writer.finish();
}

}  // namespace

TEST_CASE("shard: records come back at their places, the file appears only when it is whole") {
  Written shard;
  write(shard);
  const ShardReader reader(shard.path);
  CHECK(reader.plan_hash() == 99);
  CHECK(reader.read(shard.places[0], 10).value() == "first");
  CHECK(reader.read(shard.places[1], 11).value() == "");
  CHECK(reader.read(shard.places[2], 12).value() == "third payload");
  CHECK(shard.places[0].offset == kShardHeaderBytes);
  CHECK(!fs::exists(shard.path.string() + ".tmp"));
}

TEST_CASE("shard: every flipped bit is noticed") {
  Written shard;
  write(shard);
  const std::string good = mm::read_file(shard.path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    mm::write_file_atomic(shard.path, damaged);
    if (i < kShardHeaderBytes) {
      CHECK_THROWS_AS(ShardReader{shard.path}, mm::DataError);
      continue;
    }
    const ShardReader reader(shard.path);
    int failures = 0;
    for (size_t r = 0; r < 3; ++r) failures += !reader.read(shard.places[r], 10 + r).ok();
    CHECK(failures == 1);
  }
}

TEST_CASE("shard: wrong places, wrong ids and truncation are failures with a kind") {
  Written shard;
  write(shard);
  const ShardReader reader(shard.path);
  CHECK(reader.read(shard.places[0], 11).failure().kind == "id");
  CHECK(reader.read({shard.places[0].offset, shard.places[0].bytes + 1}, 10).failure().kind ==
        "length");
  CHECK(reader.read({shard.places[0].offset, 3}, 10).failure().kind == "truncated");
  CHECK(reader.read({reader.size_bytes(), 20}, 10).failure().kind == "truncated");
  CHECK(reader.read({UINT64_MAX - 5, 20}, 10).failure().kind == "truncated");
  for (const uint64_t size : {0u, 8u, 31u}) {
    fs::resize_file(shard.path, size);
    CHECK_THROWS_AS(ShardReader{shard.path}, mm::DataError);
  }
}

TEST_CASE("shard: a pool keeps few files open and reads them all") {
  const TempDir dir;
  std::vector<fs::path> paths;
  for (uint64_t i = 0; i < 7; ++i) {
    paths.push_back(dir / fmt::format("{}.mms", i));
    ShardWriter writer(paths.back(), i);
    writer.append(i, "x");
    writer.finish();
  }
  ShardPool pool(paths, 2);
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < 7; ++i) CHECK(pool.get(i)->plan_hash() == i);
  }
  const auto held = pool.get(0);
  for (uint32_t i = 1; i < 7; ++i) pool.get(i);
  CHECK(held->read({kShardHeaderBytes, 17}, 0).ok());
}

TEST_CASE("C18: records of 3,000,000,000 bytes get 64-bit offsets") {
  ShardInput input{std::vector<UnitSample>(3), {1}, order_by_length(3)};
  std::vector<UnitSample>& samples = input.samples;
  for (uint64_t i = 0; i < 3; ++i) samples[i].row = i;
  samples[0].payload_bytes = samples[1].payload_bytes = 3'000'000'000u - kRecordHeadBytes;
  samples[2].payload_bytes = 14;
  const auto shards = plan_shards(input, UINT64_MAX);
  REQUIRE(shards.size() == 1);
  const auto rows = index_rows(input, shards);
  CHECK(rows[0].offset == kShardHeaderBytes);
  CHECK(rows[1].offset == kShardHeaderBytes + 3'000'000'000);
  CHECK(rows[2].offset == kShardHeaderBytes + 6'000'000'000);
  CHECK(rows[1].bytes == 3'000'000'000u);
  CHECK(shards[0].bytes == kShardHeaderBytes + 6'000'000'000 + 14 + kRecordHeadBytes);
}

TEST_CASE(
    "C18: records at 2^31 - 8, 2^32 + 16 and 6,000,000,000 of a sparse 7 GiB shard are read back") {
  Written shard;
  write(shard);
  fs::resize_file(shard.path, uint64_t{7} << 30);
  const std::vector<uint64_t> offsets = {(uint64_t{1} << 31) - 8, (uint64_t{1} << 32) + 16,
                                         6'000'000'000};
  const int fd = open(shard.path.c_str(), O_WRONLY);
  REQUIRE(fd >= 0);
  for (const uint64_t offset : offsets) {
    const std::string record = frame_record(offset, fmt::format("at {}", offset));
    REQUIRE(pwrite(fd, record.data(), record.size(), static_cast<off_t>(offset)) ==
            static_cast<ssize_t>(record.size()));
  }
  close(fd);
  const ShardReader reader(shard.path);
  CHECK(reader.read(shard.places[0], 10).value() == "first");
  for (const uint64_t offset : offsets) {
    const std::string text = fmt::format("at {}", offset);
    CHECK(reader.read({offset, kRecordHeadBytes + text.size()}, offset).value() == text);
  }
}

TEST_CASE("shard layout: in another order rows keep their ids, and groups stay in one shard") {
  ShardInput input{std::vector<UnitSample>(6), {1}, {{5, 0, 3, 1, 4, 2}, {2, 5, 6}}};
  for (uint64_t i = 0; i < 6; ++i) {
    input.samples[i].row = i;
    input.samples[i].payload_bytes = 100 - kRecordHeadBytes;
  }
  const auto shards = plan_shards(input, kShardHeaderBytes + 400);
  REQUIRE(shards.size() == 2);
  CHECK(shards[0].end == 2);
  CHECK(shards[1].end == 6);
  const auto rows = index_rows(input, shards);
  CHECK(rows[5].shard == 0);
  CHECK(rows[0].offset == kShardHeaderBytes + 100);
  CHECK(rows[3].offset == kShardHeaderBytes);
  CHECK(rows[4].offset == kShardHeaderBytes + 200);
  for (uint64_t i = 0; i < 6; ++i) CHECK(rows[i].source_row == i);
}
