#include "lib/ckpt/inspect.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/ckpt/find.h"
#include "lib/ckpt/verify_target.h"
#include "tests/ckpt/raw_safetensors.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using mm::ckpt::test::save_two_ranks;
using mm::ckpt::test::TempDir;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

void write_tensors(const std::filesystem::path& path, size_t count) {
  const auto bytes = mm::ckpt::test::filled(8, 1);
  std::vector<TensorSource> tensors;
  for (size_t i = 0; i < count; ++i) {
    tensors.push_back({fmt::format("model.layers.{}.w", i), DType::kF32, {2}, bytes, {}});
  }
  write_safetensors(path, tensors);
}

}  // namespace

TEST_CASE("inspect: a run shows its newest whole checkpoint, its layout and what was passed over") {
  const TempDir dir;
  save_two_ranks(dir / "ckpt", 100);
  std::filesystem::remove(save_two_ranks(dir / "ckpt", 200) / kCommitName);
  const Inspection seen = inspect(resolve_target(dir.path()));
  CHECK(seen.target.path == dir / "ckpt/step-00000100");
  CHECK(seen.files.size() == 2);
  REQUIRE(seen.tensors.size() == 4);
  CHECK(seen.tensors[1].name == "columns");
  CHECK(seen.tensors[1].pieces.size() == 2);
  CHECK(seen.tree.bytes == (3 << 19) + 4 * 24 + 4 * 32 + 4);
  REQUIRE(seen.notes.size() == 1);
  CHECK(contains(seen.notes[0], "no COMMIT"));
  const std::string text = inspection_text(seen, {.depth = 2, .tensors = true});
  CHECK(contains(text, "step 100, save "));
  CHECK(contains(text, "2 ranks"));
  CHECK(contains(text,
                 "columns  F32 [4, 6]  96 B  2 pieces: shard-rank-00000.safetensors [0:4, 0:3] "
                 "shard-rank-00001.safetensors [0:4, 3:6]"));
  CHECK(contains(text, "total  4 tensors  1.5 MiB"));
  const mm::Json json = inspection_json(seen);
  CHECK(json["schema"] == 1);
  CHECK(json["tensors"][1]["pieces"][1]["offset"] == mm::Json({0, 3}));
  CHECK(json["checkpoint"]["step"] == 100);
}

TEST_CASE("inspect: targets are told apart by their names") {
  const TempDir dir;
  const auto step = save_two_ranks(dir / "ckpt", 7);
  std::filesystem::create_directory(dir / "hf");
  write_tensors(dir / "hf/model.safetensors", 2);
  CHECK(resolve_target(step).kind == TargetKind::kCheckpoint);
  CHECK(resolve_target(step / "").kind == TargetKind::kCheckpoint);
  CHECK(resolve_target(dir / "ckpt").kind == TargetKind::kRun);
  CHECK(resolve_target(dir.path()).kind == TargetKind::kRun);
  CHECK(resolve_target(dir / "hf").kind == TargetKind::kHuggingFace);
  CHECK(resolve_target(dir / "hf/model.safetensors").kind == TargetKind::kFile);
  CHECK_THROWS_AS(resolve_target(dir / "absent"), mm::IoError);
  std::filesystem::create_directory(dir / "empty");
  CHECK_THROWS_WITH_AS(resolve_target(dir / "empty"), doctest::Contains("holds no checkpoint"),
                       mm::DataError);
}

TEST_CASE("inspect: ten thousand tensors make one tree in the order of their numbers") {
  const TempDir dir;
  write_tensors(dir / "model.safetensors", 10'000);
  const Inspection seen = inspect(resolve_target(dir.path()));
  CHECK(seen.tree.tensors == 10'000);
  CHECK(seen.tree.parts().size() == 10'000);
  CHECK(seen.tree.parts()[10].first == "model.layers.10.w");
  CHECK(contains(inspection_text(seen, {.depth = 1}), "  model.layers."));
}

TEST_CASE("inspect: a broken file is refused, names from files are made printable") {
  const TempDir dir;
  mm::ckpt::test::write_raw(dir / "x.safetensors", "short");
  CHECK_THROWS_AS(inspect(resolve_target(dir / "x.safetensors")), mm::DataError);
  const auto byte = mm::ckpt::test::filled(1, 1);
  write_safetensors(dir / "y.safetensors",
                    std::vector<TensorSource>{{"a\x1b[2J", DType::kU8, {1}, byte, {}}});
  const std::string text = inspection_text(inspect(resolve_target(dir / "y.safetensors")),
                                           {.depth = 3, .tensors = true});
  CHECK(contains(text, "a\\x1b[2J"));
  CHECK_FALSE(contains(text, "\x1b"));
}

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
