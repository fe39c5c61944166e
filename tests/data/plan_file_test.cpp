#include "lib/data/plan_file.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/data/epoch_planner.h"
#include "lib/data/plan_cursor.h"
#include "tests/data/length_sets.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

const PlanOptions kOptions{.seed = 7,
                           .sequence_length = 256,
                           .max_images = 6,
                           .packs_per_step = 4,
                           .packing = Packing::kExact,
                           .oversize = Oversize::kDrop,
                           .image_cost = 2.5};

std::vector<SampleSize> sizes_with_drop() {
  auto sizes = random_sizes(90, 200, 1);
  sizes[5].tokens = 257;
  return sizes;
}

fs::path write_one(const TempDir& dir) {
  const auto sizes = sizes_with_drop();
  const auto path = dir / "p.mmp";
  write_plan(path, plan_epoch_table(sizes, kOptions, 3).view(), identity_of(sizes, kOptions, 3));
  return path;
}

}  // namespace

TEST_CASE("plan file: comes back as it was written, mapped, with the same hash") {
  const TempDir dir;
  const auto sizes = sizes_with_drop();
  const PlanTable table = plan_epoch_table(sizes, kOptions, 3);
  const PlanFile file(write_one(dir));
  CHECK(file.identity() == identity_of(sizes, kOptions, 3));
  CHECK(hash_plan(file.view()) == hash_plan(table.view()));
  CHECK(std::equal(file.view().rows.begin(), file.view().rows.end(), table.rows.begin(),
                   table.rows.end()));
  CHECK(file.view().steps() == table.view().steps());
  CHECK(file.view().dropped.size() == 1);
  file.check_matches(sizes);
  CHECK_THROWS_AS(file.check_matches(random_sizes(90, 200, 1)), mm::DataError);
  CHECK_THROWS_AS(file.check_matches(random_sizes(89, 200, 1)), mm::DataError);
}

TEST_CASE("plan file: every flipped byte outside the padding is refused, none crashes") {
  const TempDir dir;
  const auto path = write_one(dir);
  const std::string good = mm::read_file(path);
  const std::string hash = hash_plan(PlanFile(path).view());
  size_t harmless = 0;
  for (size_t i = 0; i < good.size(); i += 3) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x21);
    mm::write_file_atomic(path, damaged);
    try {
      const PlanFile file(path);
      ++harmless;
      CHECK(hash_plan(file.view()) == hash);
    } catch (const mm::DataError&) {
      continue;
    }
  }
  CHECK(harmless < 120);  // what lies between the columns
}

TEST_CASE("plan file: a cut file, and columns that do not make a plan, are refused") {
  const TempDir dir;
  const auto path = write_one(dir);
  const std::string good = mm::read_file(path);
  for (size_t length = 0; length < good.size(); length += 97) {
    mm::write_file_atomic(path, good.substr(0, length));
    CHECK_THROWS_AS(PlanFile{path}, mm::DataError);
  }
  const auto sizes = sizes_with_drop();
  const PlanIdentity identity = identity_of(sizes, kOptions, 3);
  const PlanTable table = plan_epoch_table(sizes, kOptions, 3);
  const auto refused = [&](PlanTable broken, const PlanIdentity& about) {
    write_plan(path, broken.view(), about);
    CHECK_THROWS_AS(PlanFile{path}, mm::DataError);
  };
  PlanTable twice = table;
  twice.rows[0] = twice.rows[1];
  refused(twice, identity);
  PlanTable beyond = table;
  beyond.rows[0] = 90;
  refused(beyond, identity);
  PlanTable empty_pack = table;
  empty_pack.pack_begin[1] = 0;
  refused(empty_pack, identity);
  PlanTable falling = table;
  falling.step_begin.back() -= 1;
  refused(falling, identity);
  PlanIdentity more = identity;
  more.samples = 91;
  refused(table, more);
}

TEST_CASE("plan file: one plan, one name; every option and the sizes are in it") {
  const auto sizes = sizes_with_drop();
  const PlanIdentity identity = identity_of(sizes, kOptions, 3);
  CHECK(plan_file_name(identity) == plan_file_name(identity_of(sizes, kOptions, 3)));
  std::vector<PlanIdentity> others(9, identity);
  others[0].epoch = 4;
  others[1].sizes_hash ^= 1;
  others[2].options.seed = 8;
  others[3].options.sequence_length = 255;
  others[4].options.max_images = 5;
  others[5].options.packs_per_step = 3;
  others[6].options.packing = Packing::kSearch;
  others[7].options.max_attention_pairs = 1'000'000;
  others[8].options.image_cost = 2;
  for (const PlanIdentity& other : others) CHECK(plan_file_name(other) != plan_file_name(identity));
}

TEST_CASE("plan cursor: a mapped plan gives the steps of the one built in memory") {
  const TempDir dir;
  const auto sizes = sizes_with_drop();
  PlanCursor built(sizes, kOptions), writes(sizes, kOptions, dir.path());
  PlanCursor maps(sizes, kOptions, dir.path());
  for (uint64_t k = 0; k < 2 * built.steps_in_epoch(); ++k) {
    const PlannedStep step = built.at(k);
    for (PlanCursor* other : {&writes, &maps}) {
      const PlannedStep same = other->at(k);
      REQUIRE(same.packs.size() == step.packs.size());
      for (size_t p = 0; p < step.packs.size(); ++p)
        CHECK(same.packs[p].samples == step.packs[p].samples);
    }
  }
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(dir.path())) {
    CHECK(entry.path().extension() == ".mmp");
    ++files;
  }
  CHECK(files == 2);
  CHECK(EpochSteps(EpochPlanner(sizes, kOptions), 0, dir.path()).mapped());
}
