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
