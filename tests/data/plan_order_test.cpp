#include "lib/data/plan_order.h"

#include <doctest/doctest.h>

#include <set>

#include "lib/base/error.h"
#include "lib/data/dataset.h"
#include "lib/data/epoch_planner.h"
#include "lib/data/plan_file.h"
#include "lib/data/verify_dataset.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

/// A plan of epoch 0 for a packed set.
fs::path plan_for(const fs::path& set, const fs::path& directory) {
  const auto sizes = Dataset::open(set)->sizes();
  const PlanOptions options{.seed = 5, .sequence_length = 64, .packs_per_step = 3};
  fs::create_directories(directory);
  const EpochPlanner planner(sizes, options);
  const EpochSteps steps(planner, 0, directory);
  return directory / plan_file_name(identity_of(sizes, options, 0));
}

}  // namespace

TEST_CASE("pack --for: each pack of the plan is one contiguous piece of one shard, ids stay") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", good_rows(120));
  PackOptions options = toy_options(dir / "in.jsonl");
  pack_dataset(options, {.output = dir / "plain"});
  options.for_plan = plan_for(dir / "plain", dir / "plans");
  const PackResult result = pack_dataset(options, {.output = dir / "ordered"});
  CHECK(result.manifest.shards.size() > 3);
  CHECK(verify_dataset(dir / "ordered").sound());

  const auto plain = Dataset::open(dir / "plain"), ordered = Dataset::open(dir / "ordered");
  const PlanFile plan(options.for_plan);
  plan.check_matches(ordered->sizes());
  for (uint64_t pack = 0; pack < plan.view().packs(); ++pack) {
    const auto rows = plan.view().pack(pack);
    for (size_t i = 1; i < rows.size(); ++i) {
      const RowPlace before = ordered->index().place(rows[i - 1]);
      const RowPlace here = ordered->index().place(rows[i]);
      CHECK(here.shard == before.shard);
      CHECK(here.offset == before.offset + before.bytes);
    }
    PixelVector pixels, other_pixels;
    const auto one = plain->read_pack(rows, pixels);
    const auto other = ordered->read_pack(rows, other_pixels);
    CHECK(pixels == other_pixels);
    for (size_t i = 0; i < rows.size(); ++i) {
      REQUIRE(other[i].ok());
      CHECK(one[i]->text == other[i]->text);
      CHECK(plain->key(rows[i]) == ordered->key(rows[i]));
    }
  }
}

TEST_CASE("pack --for: a plan of other samples is refused, and a set without it is another set") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", good_rows(40));
  write_jsonl(dir / "more.jsonl", good_rows(41));
  PackOptions options = toy_options(dir / "in.jsonl");
  pack_dataset(options, {.output = dir / "plain"});
  const fs::path plan = plan_for(dir / "plain", dir / "plans");
  PackOptions other = toy_options(dir / "more.jsonl");
  other.for_plan = plan;
  CHECK_THROWS_AS(pack_dataset(other, {.output = dir / "other"}), mm::DataError);
  options.for_plan = plan;
  CHECK_THROWS_AS(pack_dataset(options, {.output = dir / "plain"}), mm::UsageError);
}
