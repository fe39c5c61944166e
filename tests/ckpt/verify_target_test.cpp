#include "lib/ckpt/verify_target.h"

#include <doctest/doctest.h>

#include <limits>

#include "lib/ckpt/find.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using mm::ckpt::test::save_two_ranks;
using mm::ckpt::test::TempDir;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "verify target: a run's checkpoints are all judged, foreign files by the format's rules") {
  const TempDir dir;
  save_two_ranks(dir / "ckpt", 1);
  const auto shard = save_two_ranks(dir / "ckpt", 2) / shard_name(0);
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 1);
  std::filesystem::create_directory(dir / "ckpt/step-00000003.tmp-x");
  const auto items = verify_target(resolve_target(dir.path()), {});
  REQUIRE(items.size() == 3);
  CHECK_FALSE(all_ok(items));
  CHECK(items[0].report.ok());
  CHECK_FALSE(items[1].report.ok());
  CHECK(items[2].report.ok());
  CHECK(contains(verified_text(items, {}), "BROKEN  " + (dir / "ckpt/step-00000002").string()));
  CHECK(verified_json(items, {})["ok"] == false);
  const auto foreign = verify_target(resolve_target(items[2].path / shard_name(0)), {});
  CHECK(all_ok(foreign));
  CHECK(contains(verified_text(foreign, {}), "no checksums compared"));
}

TEST_CASE("verify target: values that weights should not hold are counted per tensor") {
  const TempDir dir;
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  const auto floats = mm::ckpt::test::floats({1, nan, -inf, inf, 0, nan});
  const std::vector<std::byte> halves = {std::byte{0}, std::byte{0x7C}, std::byte{1},
                                         std::byte{0x7C}},
                               bools = {std::byte{1}, std::byte{7}};
  const std::vector<TensorSource> tensors = {{"f", DType::kF32, {6}, floats, {}},
                                             {"h", DType::kF16, {2}, halves, {}},
                                             {"b", DType::kBool, {2}, bools, {}},
                                             {"bf", DType::kBF16, {2}, halves, {}}};
  write_safetensors(dir / "x", tensors);
  const VerifyTargetOptions options{.values = true};
  const auto items = verify_target(resolve_target(dir / "x"), options);
  CHECK(items[0].values.nan == 3);
  CHECK(items[0].values.infinite == 3);
  CHECK(items[0].values.bad_bool == 1);
  CHECK(items[0].odd_tensors.size() == 3);
  CHECK(all_ok(items));
}
