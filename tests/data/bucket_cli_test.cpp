#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "lib/data/plan_file.h"
#include "tests/data/mmshard_process.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

std::string pack_command(const TempDir& dir, const std::string& out) {
  write_jsonl(dir / "in.jsonl", good_rows(40));
  return fmt::format(
      "pack in.jsonl --out {} --image-root '{}/field' --tokenizer '{}' --quiet "
      "--geometry buckets --buckets 8x8,12x6,6x12 ",
      out, MM_TEST_DATA, toy_tokenizer().string());
}

}  // namespace

TEST_CASE("mmshard: a bucketed set is packed, told, shown, verified and exported") {
  const TempDir dir;
  const Output packed = mmshard(dir, pack_command(dir, "set"));
  REQUIRE(packed.code == 0);
  CHECK(packed.out.starts_with("set: 40 samples, 40 pictures, "));
  CHECK(packed.out.find("trained on") == std::string::npos);
  CHECK(packed.out.find(" of 3 buckets; ") != std::string::npos);
  const Output info = mmshard(dir, "info set");
  CHECK(info.code == 0);
  CHECK(info.out.find("captions without a template") != std::string::npos);
  CHECK(info.out.find("12x6") != std::string::npos);
  const mm::Json json = mm::parse_json(mmshard(dir, "info set --json").out, "info");
  CHECK(json["pictures"]["buckets"].size() == 3);
  CHECK(json["bucketing"]["pictures"].size() == 3);
  CHECK(mmshard(dir, "show set --out s.html").code == 0);
  CHECK(mmshard(dir, "verify set").out.find("sound") != std::string::npos);
  CHECK(mmshard(dir, "export set --to folder --out again --quiet").code == 0);
  CHECK(std::filesystem::exists(dir / "again"));
}

TEST_CASE("mmshard plan: a bucketed set by pixels, and shards in the order of its plan") {
  const TempDir dir;
  REQUIRE(mmshard(dir, pack_command(dir, "set")).code == 0);
  CHECK(mmshard(dir, "plan set --sequence-length 64").code == 2);
  const Output plan =
      mmshard(dir, "plan set --batch-pixels 4x8x8 --packs-per-step 4 --ranks 4 --out p.mmp --json");
  REQUIRE(plan.code == 0);
  const mm::Json json = mm::parse_json(plan.out, "plan");
  CHECK(json["packing"] == "buckets");
  CHECK(json["pictures"] == 40);
  CHECK(json["rows"].size() == 3);
  CHECK(json["rows"][2]["ranks"] == 4);
  CHECK(json["rows"][2]["plan"]["pixels"]["worst"].get<double>() <= 1.01);
  CHECK(json["dropped"].empty());
  const PlanFile file(dir / "p.mmp");
  CHECK(file.view().rows.size() == 40);
  CHECK(file.view().packs() % 4 == 0);
  CHECK(file.view().fillers.size() == file.view().packs());
  CHECK(file.identity().options.batch_pixels == 256);
  REQUIRE(mmshard(dir, pack_command(dir, "ordered") + "--for p.mmp").code == 0);
  CHECK(mmshard(dir, "verify ordered").code == 0);
}

TEST_CASE("mmshard plan: dropped pictures are named with bucket and reason") {
  const TempDir dir;
  REQUIRE(mmshard(dir, pack_command(dir, "set")).code == 0);
  const Output plan =
      mmshard(dir, "plan set --batch-pixels 7x8x8 --packs-per-step 1 --leftovers drop");
  REQUIRE(plan.code == 0);
  CHECK(plan.out.find("dropped ") != std::string::npos);
  CHECK(plan.out.find("pictures make a batch") != std::string::npos);
}

TEST_CASE("mmshard plan: a table of picture sizes alone, 1 to 1,024 ranks") {
  const TempDir dir;
  std::string table = "name,height,width\n";
  for (int i = 0; i < 300; ++i) table += fmt::format("p{0},{1},{2}\n", i, 600 + i, 900 - 2 * i);
  mm::write_file_atomic(dir / "sizes.csv", table);
  const std::string buckets = "--sizes sizes.csv --bucket-area 512x512,256x256 ";
  const Output json = mmshard(dir, "plan " + buckets + "--batch-pixels 4x512x512 --json");
  REQUIRE(json.code == 0);
  const mm::Json report = mm::parse_json(json.out, "plan");
  CHECK(report["rows"].size() == 11);
  CHECK(report["enlarged"] == 0);
  const Output text = mmshard(dir, "plan " + buckets + "--batch-pixels 4x512x512 --ranks 2");
  CHECK(text.out.find("random buckets on each rank") != std::string::npos);
  CHECK(mmshard(dir, "plan " + buckets).code == 2);
  CHECK(mmshard(dir, "plan --sizes sizes.csv --batch-pixels 99").code == 2);
  mm::write_file_atomic(dir / "sizes.csv", "width,height\n0,4\n");
  const Output bad = mmshard(dir, "plan " + buckets + "--batch-pixels 4x512x512");
  CHECK(bad.code == 65);
  CHECK(bad.err.find("a picture of 0 x 4") != std::string::npos);
}

TEST_CASE("mmshard pack: classes of folders; what does not go together ends with 2") {
  const TempDir dir;
  for (const char* name : {"a/one.png", "b/two.png"}) {
    std::filesystem::create_directories((dir / name).parent_path());
    std::filesystem::copy_file(field_picture("rgba.png"), dir / name);
  }
  CHECK(mmshard(dir, "pack a --out set --quiet").code == 2);
  CHECK(mmshard(dir, "pack . --labels folder --out set --quiet").code == 2);
  const Output packed =
      mmshard(dir, "pack . --labels folder --out set --quiet --geometry buckets --buckets 8x8");
  REQUIRE(packed.code == 0);
  const Output info = mmshard(dir, "info set");
  CHECK(info.out.find("2 classes") != std::string::npos);
}
