#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "lib/data/plan_file.h"
#include "tests/data/length_sets.h"
#include "tests/data/mmshard_process.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

Output plan(const TempDir& dir, const std::string& arguments) {
  return mmshard(dir, "plan " + arguments);
}

}  // namespace

TEST_CASE("mmshard plan: real lengths alone, 4,096 tokens and 15 images, padding within 0.8 %") {
  const TempDir dir;
  const std::string arguments = fmt::format(
      "--lengths '{}' --sequence-length 4096 --max-images 15 --slots 64", internvl_file().string());
  const Output json = plan(dir, arguments + " --json");
  REQUIRE(json.code == 0);
  const mm::Json report = mm::parse_json(json.out, "stdout");
  CHECK(report["schema"] == 1);
  CHECK(report["samples"] == 70'706);
  CHECK(report["padding"].get<double>() <= 0.008);
  CHECK(report["padding_lower_bound"].get<double>() <= report["padding"].get<double>());
  CHECK(report["rank_cost"]["mean"].get<double>() <= 1.01);
  CHECK(report["dropped"] == 0);
  CHECK(report["repeated"] == 0);
}

TEST_CASE("mmshard plan: a length table by hand, as text, and its plan as a file") {
  const TempDir dir;
  mm::write_file_atomic(dir / "l.csv", "images,tokens\n1,6\n0,4\n1,3\n0,7\n1,11\n");
  const Output refused = plan(dir, "--lengths l.csv --sequence-length 10");
  CHECK(refused.code == 65);
  CHECK(refused.out.empty());
  CHECK(refused.err.find("sample 4 has 11 tokens") != std::string::npos);
  const Output text =
      plan(dir, "--lengths l.csv --sequence-length 10 --oversize drop --slots 2 --out p.mmp");
  REQUIRE(text.code == 0);
  CHECK(text.out.starts_with(
      "epoch 0: 4 samples in 2 packs of 10 tokens (2.00 a pack), 1 steps of 2 packs, the last of "
      "2\n"
      "padding 0.00 % by best_fit packing; no packing goes below 0.00 % (2 packs, by sum): 0.00 % "
      "more packs than that\n"
      "1 dropped, 0 repeated, 1 pack lengths\n"
      "2 ranks, 1 micro-batches a rank, 0 without a pack; max / mean over ranks:\n"));
  CHECK(text.out.ends_with("written to p.mmp\n"));
  const PlanFile file(dir / "p.mmp");
  CHECK(file.view().packs() == 2);
  CHECK(file.view().dropped[0] == 4);
  const Output cut = plan(dir, "--lengths l.csv --sequence-length 10 --oversize cut --json");
  CHECK(mm::parse_json(cut.out, "stdout")["tokens"] == 30);
  CHECK(plan(dir, "--sequence-length 10").code == 2);
  mm::write_file_atomic(dir / "none.csv", "tokens\n");
  const Output none = plan(dir, "--lengths none.csv --sequence-length 10");
  CHECK(none.code == 65);
  CHECK(none.err.find("none.csv: no samples in it") != std::string::npos);
  CHECK(plan(dir, "set --lengths l.csv --sequence-length 10").code == 2);
}
