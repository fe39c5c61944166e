#include "lib/data/loader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

/// tiny_sample(0..count-1) in memory; `broken` rows fail, `lost` rows throw.
class MemoryStore : public SampleStore {
 public:
  explicit MemoryStore(uint32_t count) : count_(count) {}
  uint64_t rows() const override { return count_; }
  std::vector<SampleSize> sizes() const override {
    std::vector<SampleSize> all;
    for (uint32_t i = 0; i < count_; ++i) all.push_back(size_of(tiny_sample(i).text));
    return all;
  }
  std::string_view key(uint64_t) const override { return "key"; }
  PictureLayout pictures() const override { return {kSide, kSide, kPatches, kImageToken}; }
  mm::Result<Sample> read(uint64_t row) const override {
    if (lost.contains(row)) throw mm::IoError("storage is gone");
    if (broken.contains(row)) return mm::Failure{"checksum", "checksum mismatch"};
    return tiny_sample(static_cast<uint32_t>(row));
  }
  std::set<uint64_t> broken, lost;

 private:
  uint32_t count_;
};

LoaderOptions one_by_one(uint64_t seed, uint64_t start_step = 0) {
  return {
      .plan = {.seed = seed, .sequence_length = 32, .packs_per_step = 1, .packing = Packing::kNone},
      .start_step = start_step,
      .prefetch_steps = 4,
      .threads = 2,
      .augmentation = {.seed = 3, .shift_pixels = 2, .flip_probability = 0.5}};
}

/// Ids and pixels of the next `steps` steps, flat.
struct Stream {
  std::vector<uint64_t> ids;
  std::vector<uint8_t> pixels;
};

Stream take(Loader& loader, size_t steps) {
  Stream stream;
  for (size_t i = 0; i < steps; ++i) {
    for (const MicroBatch& batch : loader.next().micro_batches) {
      stream.ids.insert(stream.ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
      stream.pixels.insert(stream.pixels.end(), batch.pixels.begin(), batch.pixels.end());
    }
  }
  return stream;
}

/// Ids of one step over all ranks.
std::multiset<uint64_t> step_ids(std::vector<std::unique_ptr<Loader>>& ranks) {
  std::multiset<uint64_t> ids;
  for (auto& loader : ranks) {
    for (const MicroBatch& batch : loader->next().micro_batches) {
      ids.insert(batch.sample_ids.begin(), batch.sample_ids.end());
    }
  }
  return ids;
}

std::vector<std::unique_ptr<Loader>> all_ranks(const SampleStore& store, LoaderOptions options,
                                               int ranks, uint64_t start_step) {
  std::vector<std::unique_ptr<Loader>> loaders;
  options.ranks = ranks;
  options.start_step = start_step;
  for (int r = 0; r < ranks; ++r) {
    options.rank = r;
    loaders.push_back(std::make_unique<Loader>(store, options));
  }
  return loaders;
}

}  // namespace

TEST_CASE("C25: a loader resumed at step k yields exactly what the unbroken one yields from k on") {
  const MemoryStore store(10);
  Loader whole(store, one_by_one(1));
  const Stream all = take(whole, 20);
  for (uint64_t k = 0; k <= 20; ++k) {
    Loader first(store, one_by_one(1));
    take(first, k);
    CHECK(first.position() == k);
    Loader resumed(store, one_by_one(1, first.position()));
    const Stream rest = take(resumed, 20 - k);
    CHECK(rest.ids == std::vector<uint64_t>(all.ids.begin() + static_cast<long>(k), all.ids.end()));
    CHECK(std::equal(rest.pixels.rbegin(), rest.pixels.rend(), all.pixels.rbegin()));
  }
}

TEST_CASE("C26: resume at the end of an epoch and inside the second one") {
  const MemoryStore store(10);
  Loader whole(store, one_by_one(1));
  const auto all = take(whole, 30).ids;
  for (const uint64_t k : {10u, 13u}) {
    Loader resumed(store, one_by_one(1, k));
    CHECK(take(resumed, 30 - k).ids ==
          std::vector<uint64_t>(all.begin() + static_cast<long>(k), all.end()));
  }
  const std::set<uint64_t> third(all.begin() + 20, all.end());
  CHECK(third.size() == 10);
}

TEST_CASE("C26: 512 samples stopped at 512 go on with epoch 2") {
  const MemoryStore store(512);
  Loader resumed(store, one_by_one(1, 512));
  const LoaderStep step = resumed.next();
  CHECK(step.plan.position.epoch == 1);
  CHECK(step.plan.position.step_in_epoch == 0);
  const auto rest = take(resumed, 511).ids;
  std::set<uint64_t> ids(rest.begin(), rest.end());
  ids.insert(step.micro_batches[0].sample_ids[0]);
  CHECK(ids.size() == 512);
}

TEST_CASE("C27: after 3 steps at 4 ranks, 2, 8 and 1 ranks see the same samples per step") {
  const MemoryStore store(64);
  const LoaderOptions options{
      .plan = {.seed = 1, .sequence_length = 32, .packs_per_step = 8, .packing = Packing::kNone}};
  auto one = all_ranks(store, options, 1, 0);
  std::vector<std::multiset<uint64_t>> unbroken;
  for (int i = 0; i < 8; ++i) unbroken.push_back(step_ids(one));
  auto four = all_ranks(store, options, 4, 0);
  for (size_t i = 0; i < 3; ++i) CHECK(step_ids(four) == unbroken[i]);
  for (const int ranks : {2, 8, 1, 3}) {
    auto resumed = all_ranks(store, options, ranks, 3);
    std::set<uint64_t> rest;
    for (size_t i = 3; i < 8; ++i) {
      const auto ids = step_ids(resumed);
      CHECK(ids == unbroken[i]);
      rest.insert(ids.begin(), ids.end());
    }
    CHECK(rest.size() == 40);
  }
}

TEST_CASE("C29: each epoch of the loader has another order") {
  const MemoryStore store(10);
  Loader loader(store, one_by_one(1));
  std::set<std::vector<uint64_t>> orders;
  for (int epoch = 0; epoch < 3; ++epoch) orders.insert(take(loader, 10).ids);
  Loader other(store, one_by_one(2));
  orders.insert(take(other, 10).ids);
  CHECK(orders.size() == 4);
}

TEST_CASE("C31: ranks run equal counts of micro-batches, missing ones are empty with no target") {
  const MemoryStore store(11);
  const LoaderOptions options{
      .plan = {.seed = 1, .sequence_length = 32, .packs_per_step = 4, .packing = Packing::kNone}};
  auto ranks = all_ranks(store, options, 3, 0);
  for (int step = 0; step < 6; ++step) {
    int64_t targets = 0, tokens = 0, images = 0;
    std::set<size_t> counts;
    LoaderStep last;
    for (auto& loader : ranks) {
      last = loader->next();
      counts.insert(last.micro_batches.size());
      for (const MicroBatch& batch : last.micro_batches) {
        targets += batch.target_count;
        tokens += static_cast<int64_t>(batch.tokens.size());
        images += batch.images;
        if (batch.sample_ids.empty()) {
          CHECK(batch.cu_seqlens == std::vector<int32_t>{0});
          CHECK(batch.tokens.empty());
        }
      }
    }
    CHECK(counts.size() == 1);
    CHECK(targets == last.plan.targets);
    CHECK(tokens == last.plan.tokens);
    CHECK(images == last.plan.images);
  }
}

TEST_CASE("loader: a damaged sample keeps its place with weight 0 and is named") {
  MemoryStore store(10);
  store.broken = {3, 4};
  LoaderOptions options = one_by_one(1);
  options.plan.packs_per_step = 10;
  Loader loader(store, options);
  const LoaderStep step = loader.next();
  REQUIRE(step.bad.size() == 2);
  CHECK(step.bad[0].kind == "checksum");
  int64_t targets = 0, tokens = 0, images = 0;
  for (const MicroBatch& batch : step.micro_batches) {
    const uint64_t id = batch.sample_ids.at(0);
    targets += batch.target_count;
    tokens += static_cast<int64_t>(batch.tokens.size());
    images += batch.images;
    CHECK(batch.target_count == (id == 3 || id == 4 ? 0 : 2));
    CHECK(batch.image_token_index.size() == static_cast<size_t>(batch.images) * kPatches);
  }
  CHECK(targets == step.plan.targets - 4);
  CHECK(tokens == step.plan.tokens);
  CHECK(images == step.plan.images);
}

TEST_CASE("loader: lost storage ends in the reading thread's error, not in a hang") {
  MemoryStore store(10);
  store.lost = {5};
  Loader loader(store, one_by_one(1));
  CHECK_THROWS_WITH_AS(take(loader, 20), "storage is gone", mm::IoError);
}

TEST_CASE("loader: impossible options are usage errors") {
  const MemoryStore store(2);
  LoaderOptions options = one_by_one(1);
  options.rank = 1;
  CHECK_THROWS_AS(Loader(store, options), mm::UsageError);
  options = one_by_one(1);
  options.threads = 0;
  CHECK_THROWS_AS(Loader(store, options), mm::UsageError);
  options = one_by_one(1);
  options.prefetch_steps = 0;
  CHECK_THROWS_AS(Loader(store, options), mm::UsageError);
  options = one_by_one(1);
  options.augmentation.flip_probability = 1.5;
  CHECK_THROWS_AS(Loader(store, options), mm::UsageError);
  CHECK_THROWS_AS(Loader(MemoryStore(0), one_by_one(1)), mm::DataError);
}

TEST_CASE("loader: destruction in the middle of reading ends at once") {
  const MemoryStore store(64);
  for (int i = 0; i < 20; ++i) Loader loader(store, one_by_one(1));
  CHECK(true);
}
