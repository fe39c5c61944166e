#include "lib/ckpt/block_checksums.h"

#include <doctest/doctest.h>

#include "lib/base/hash.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;

namespace {

FileChecksums sums_in_parts(std::span<const std::byte> bytes, size_t part) {
  ChecksumStream stream;
  for (size_t at = 0; at < bytes.size(); at += part)
    stream.update(bytes.subspan(at, std::min(part, bytes.size() - at)));
  return stream.finish();
}

}  // namespace

TEST_CASE("block checksums: parts of any size give the same sums") {
  const auto bytes = mm::ckpt::test::filled(2 * kBlockBytes + 17, 5);
  const FileChecksums whole = sums_in_parts(bytes, bytes.size());
  CHECK(whole.block_crc32c.size() == 3);
  CHECK(whole.xxh3_128 == mm::xxh3_128_hex(bytes));
  for (const size_t part :
       {size_t{999}, size_t{kBlockBytes - 1}, size_t{kBlockBytes}, size_t{kBlockBytes + 1}}) {
    CHECK(sums_in_parts(bytes, part) == whole);
  }
}

TEST_CASE("block checksums: a full last block has no empty one behind it, an empty file has none") {
  const auto bytes = mm::ckpt::test::filled(kBlockBytes, 5);
  const FileChecksums one = sums_in_parts(bytes, 4096);
  REQUIRE(one.block_crc32c.size() == 1);
  CHECK(one.block_crc32c[0] == mm::crc32c(bytes));
  const FileChecksums none = ChecksumStream().finish();
  CHECK(none.size_bytes == 0);
  CHECK(none.block_crc32c.empty());
  CHECK(none.xxh3_128 == mm::xxh3_128_hex(std::string_view()));
}
