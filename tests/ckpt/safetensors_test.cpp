#include "lib/ckpt/safetensors.h"

#include <doctest/doctest.h>

#include <numeric>

#include "lib/base/error.h"
#include "lib/ckpt/safetensors_writer.h"
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

TEST_CASE("safetensors: what was written is read back, by name and by range") {
  const TempDir dir;
  const auto a = counting(24), b = counting(6, 100), empty = counting(0);
  const std::vector<TensorSource> tensors = {{"b.bias", DType::kBF16, {3}, b, {}},
                                             {"a.weight", DType::kF32, {2, 3}, a, {}},
                                             {"none", DType::kI64, {0, 4}, empty, {}}};
  write_safetensors(dir / "x.safetensors", tensors, {{"step", "7"}});
  const auto file = SafetensorsFile::open(dir / "x.safetensors");
  CHECK(file.data_start() % 8 == 0);
  CHECK(file.metadata() == Metadata{{"format", "pt"}, {"step", "7"}});
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.at("a.weight").shape == std::vector<uint64_t>{2, 3});
  CHECK(file.read(file.at("a.weight")) == a);
  CHECK(file.read(file.at("b.bias")) == b);
  CHECK(file.read(file.at("none")).empty());
  std::vector<std::byte> part(5);
  file.read_range(file.at("a.weight"), 7, part);
  CHECK(std::equal(part.begin(), part.end(), a.begin() + 7));
  CHECK(file.find("a.Weight") == nullptr);
  CHECK_THROWS_WITH_AS(file.at("c"), doctest::Contains("no tensor 'c' among 3"), mm::DataError);
}

TEST_CASE("safetensors: odd names survive the round trip") {
  const TempDir dir;
  const auto one = counting(1);
  const std::vector<TensorSource> tensors = {{"../x", DType::kU8, {1}, one, {}},
                                             {"tab\t\"q\"\\\x01", DType::kU8, {1}, one, {}},
                                             {"\u00e9\u4e2d\U0001F98A", DType::kU8, {1}, one, {}}};
  write_safetensors(dir / "x", tensors);
  const auto file = SafetensorsFile::open(dir / "x");
  for (const auto& tensor : tensors) CHECK(file.find(tensor.name) != nullptr);
}
