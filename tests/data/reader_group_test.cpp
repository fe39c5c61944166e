#include "lib/data/reader_group.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/data/dataset.h"
#include "lib/data/loader.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

/// Data coordinates of a mesh whose tensor coordinate runs fastest, as dist::Mesh has it.
std::vector<int> mesh(int data, int others) {
  std::vector<int> coordinates;
  for (int rank = 0; rank < data * others; ++rank) coordinates.push_back(rank / others);
  return coordinates;
}

LoaderOptions options_of(const ReaderGroup& group, int rank) {
  LoaderOptions options;
  options.plan = {.seed = 3, .sequence_length = 24, .packs_per_step = 10,
                  .packing = Packing::kNone};
  options.rank = group.data_rank;
  options.ranks = group.data_ranks;
  options.reads = group.reader == rank;
  return options;
}

}  // namespace

TEST_CASE("reader group: one rank of those with the same data coordinate reads") {
  const ReaderGroup group = reader_group(mesh(2, 4), 6);
  CHECK(group.data_rank == 1);
  CHECK(group.data_ranks == 2);
  CHECK(group.reader == 4);
  CHECK(group.members == std::vector<int>{4, 5, 6, 7});
  CHECK(reader_group(mesh(3, 1), 2).members == std::vector<int>{2});
  CHECK(reader_group(std::vector<int>{0, 1, 0, 1}, 2).members == std::vector<int>{0, 2});
}

TEST_CASE("reader group: a mesh with a hole or groups of other sizes is refused") {
  CHECK_THROWS_AS(reader_group(std::vector<int>{0, 0, 1}, 0), mm::UsageError);
  CHECK_THROWS_AS(reader_group(std::vector<int>{0, 2}, 0), mm::UsageError);
  CHECK_THROWS_AS(reader_group(mesh(2, 2), 4), mm::UsageError);
}

TEST_CASE("C28: with two tensor ranks, ten steps of two times five samples are 100, not 200") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 200);
  const auto set = Dataset::open(dir / "set");
  std::vector<std::vector<uint64_t>> read(4);
  uint64_t planned = 0;
  for (int rank = 0; rank < 4; ++rank) {
    Loader loader(*set, options_of(reader_group(mesh(2, 2), rank), rank));
    for (int i = 0; i < 10; ++i) {
      const LoaderStep step = loader.next();
      if (rank == 3) planned += step.plan.packs.size();
      CHECK(step.micro_batches.size() == 5);
      for (const MicroBatch& batch : step.micro_batches)
        read[rank].insert(read[rank].end(), batch.sample_ids.begin(), batch.sample_ids.end());
    }
    CHECK(loader.position() == 10);
  }
  CHECK(planned == 100);
  CHECK(read[0].size() == 50);
  CHECK(read[1].empty());
  CHECK(read[2].size() == 50);
  CHECK(read[3].empty());
  // Resumed, the next ones are those that follow.
  std::vector<uint64_t> all = read[0];
  all.insert(all.end(), read[2].begin(), read[2].end());
  LoaderOptions again = options_of(reader_group(mesh(2, 2), 0), 0);
  again.start_step = 10;
  for (const MicroBatch& batch : Loader(*set, again).next().micro_batches) {
    for (const uint64_t id : batch.sample_ids)
      CHECK(std::find(all.begin(), all.end(), id) == all.end());
  }
}
