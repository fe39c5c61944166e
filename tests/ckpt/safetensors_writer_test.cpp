#include "lib/ckpt/safetensors_writer.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/ckpt/safetensors.h"
#include "tests/ckpt/temp_dir.h"

using namespace mm::ckpt;
using mm::ckpt::test::TempDir;

namespace {

std::vector<std::byte> counting(size_t bytes, int start = 0) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i)
    out[i] = static_cast<std::byte>((start + static_cast<int>(i)) & 0xFF);
  return out;
}

}  // namespace

TEST_CASE("safetensors: bytes depend on tensors and metadata only, by alignment and then by name") {
  const TempDir dir;
  const auto eight = counting(8), two = counting(2), one = counting(1);
  std::vector<TensorSource> tensors = {{"z", DType::kU8, {}, one, {}},
                                       {"a", DType::kF16, {1}, two, {}},
                                       {"y", DType::kI64, {1}, eight, {}},
                                       {"b", DType::kF16, {1}, two, {}}};
  write_safetensors(dir / "1", tensors, {{"b", "2"}, {"a", "1"}});
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(dir / "2", tensors, {{"a", "1"}, {"b", "2"}});
  CHECK(mm::read_file(dir / "1") == mm::read_file(dir / "2"));
  std::string order;
  const auto file = SafetensorsFile::open(dir / "1");
  for (const auto& entry : file.tensors()) order += entry.name;
  CHECK(order == "yabz");
}

TEST_CASE(
    "safetensors: streamed parts give the same file as one span, and the checksums are those of "
    "the file") {
  const TempDir dir;
  const auto big = counting(3 * kBlockBytes / 2 + 5);
  const std::vector<uint64_t> shape = {big.size()};
  const std::vector<TensorSource> whole = {{"w", DType::kU8, shape, big, {}}};
  const std::vector<TensorSource> parts = {{"w", DType::kU8, shape, {}, [&](const ByteSink& sink) {
                                              const std::span<const std::byte> all(big);
                                              sink(all.first(11));
                                              sink(all.subspan(11, kBlockBytes));
                                              sink(all.subspan(11 + kBlockBytes));
                                            }}};
  const WrittenFile first = write_safetensors(dir / "1", whole);
  const WrittenFile second = write_safetensors(dir / "2", parts);
  const std::string bytes = mm::read_file(dir / "1");
  CHECK(bytes == mm::read_file(dir / "2"));
  CHECK(first.checksums == second.checksums);
  CHECK(first.checksums.size_bytes == bytes.size());
  CHECK(first.checksums.xxh3_128 == mm::xxh3_128_hex(bytes));
  REQUIRE(first.checksums.block_crc32c.size() == 2);
  CHECK(first.checksums.block_crc32c[0] ==
        mm::crc32c(std::string_view(bytes).substr(0, kBlockBytes)));
  CHECK(first.checksums.block_crc32c[1] == mm::crc32c(std::string_view(bytes).substr(kBlockBytes)));
}

TEST_CASE("safetensors: the writer refuses what the format cannot hold and leaves nothing behind") {
  const TempDir dir;
  const auto four = counting(4);
  const auto refuse = [&](std::vector<TensorSource> tensors, const char* message,
                          Metadata metadata = {}) {
    CHECK_THROWS_WITH_AS(write_safetensors(dir / "x", tensors, metadata),
                         doctest::Contains(message), mm::DataError);
    CHECK(std::filesystem::is_empty(dir.path()));
  };
  refuse({{"a", DType::kF32, {1}, four, {}}, {"a", DType::kI32, {1}, four, {}}},
         "two tensors named 'a'");
  refuse({{"", DType::kF32, {1}, four, {}}}, "cannot be the name");
  refuse({{"__metadata__", DType::kF32, {1}, four, {}}}, "cannot be the name");
  refuse({{"\xFF", DType::kF32, {1}, four, {}}}, "cannot be the name");
  refuse({{"a", DType::kF32, {2}, four, {}}},
         "4 bytes were given for F32 of shape [2], which needs 8");
  refuse({{"a", DType::kU8, {3}, four, {}}}, "4 bytes were given");
  refuse({{"a", DType::kF4, {3}, four, {}}}, "not whole bytes");
  refuse({{"a", DType::kF64, {uint64_t{1} << 40, uint64_t{1} << 40}, four, {}}},
         "does not fit 64 bits");
  refuse({{std::string(kMaxHeaderBytes, 'n'), DType::kF32, {1}, four, {}}}, "split the file");
  refuse({}, "not valid UTF-8", {{"k", "\xC0\x80"}});
}
