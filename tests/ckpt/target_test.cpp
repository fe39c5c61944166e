#include "lib/ckpt/target.h"

#include <doctest/doctest.h>

#include <fstream>

#include "lib/base/error.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using mm::ckpt::test::save_two_ranks;
using mm::ckpt::test::TempDir;

TEST_CASE("target: kinds are told apart by their names") {
  const TempDir dir;
  const auto step = save_two_ranks(dir / "ckpt", 7);
  std::filesystem::create_directory(dir / "hf");
  write_safetensors(dir / "hf/model.safetensors", {});
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
  std::ofstream(dir / "empty/pytorch_model.bin") << "PK";
  CHECK_THROWS_WITH_AS(resolve_target(dir / "empty"),
                       doctest::Contains("'pytorch_model.bin' is not read, save the model as"),
                       mm::DataError);
}
