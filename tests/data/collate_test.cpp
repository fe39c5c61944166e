#include "lib/data/collate.h"

#include <doctest/doctest.h>

using namespace mm::data;

namespace {

Sample words(std::vector<int32_t> tokens) {
  Sample sample;
  const auto length = static_cast<uint32_t>(tokens.size());
  sample.text.tokens = std::move(tokens);
  sample.text.trainable = {{0, length}};
  return sample;
}

/// The toy conversation: one picture of 4 tokens, two answers.
Sample toy() {
  Sample sample;
  sample.text.tokens = {1, 4, 6, 6, 6, 6, 7, 8, 9, 5, 10, 11, 2, 4, 13, 14, 5, 10, 12, 2};
  sample.text.trainable = {{10, 13}, {17, 20}};
  sample.text.image_begin = {2};
  sample.pixels.assign(12, 9);
  return sample;
}

constexpr PictureLayout kLayout{2, 2, 4, 6};

}  // namespace

TEST_CASE("C20: no target crosses the seam of two samples in one row") {
  MicroBatch batch = empty_micro_batch({});
  append_sample(words({11, 12, 13}), 0, {}, batch);
  append_sample(words({21, 22, 23, 24}), 1, {}, batch);
  CHECK(batch.tokens == std::vector<int32_t>{11, 12, 13, 21, 22, 23, 24});
  CHECK(batch.targets == std::vector<int32_t>{12, 13, -100, 22, 23, 24, -100});
  CHECK(batch.target_count == 5);
  CHECK(batch.positions == std::vector<int32_t>{0, 1, 2, 0, 1, 2, 3});
  CHECK(batch.cu_seqlens == std::vector<int32_t>{0, 3, 7});
  CHECK(batch.sample_ids == std::vector<uint64_t>{0, 1});
  CHECK(batch.attention_pairs == 6 + 10);
}

TEST_CASE("C20: the toy sample packed twice has 12 targets, as planned") {
  MicroBatch batch = empty_micro_batch(kLayout);
  append_sample(toy(), 0, kLayout, batch);
  append_sample(toy(), 1, kLayout, batch);
  CHECK(batch.target_count == 12);
  CHECK(size_of(toy().text).targets == 6);
  CHECK(batch.image_token_index == std::vector<int32_t>{2, 3, 4, 5, 22, 23, 24, 25});
  CHECK(batch.images == 2);
  CHECK(batch.pixels.size() == 24);
}

TEST_CASE(
    "collate: targets counted in the plan equal those collated when the first token is trainable") {
  MicroBatch batch = empty_micro_batch({});
  append_sample(words({5}), 0, {}, batch);
  CHECK(batch.target_count == 0);
  CHECK(size_of(words({5}).text).targets == 0);
  CHECK(size_of(words({5, 6}).text).targets == 1);
}

TEST_CASE("stand_in: planned sizes, placeholders in front, nothing to learn") {
  const Sample sample = stand_in({.tokens = 10, .images = 2, .targets = 3}, kLayout);
  CHECK(size_of(sample.text).tokens == 10);
  CHECK(size_of(sample.text).images == 2);
  CHECK(size_of(sample.text).targets == 0);
  CHECK(sample.text.tokens == std::vector<int32_t>{6, 6, 6, 6, 6, 6, 6, 6, 0, 0});
  CHECK(sample.pixels.size() == 24);
}

TEST_CASE("collate: pictures of several tiles bring their grids, tokens and sizes") {
  const PictureLayout layout{
      .height = 2, .width = 2, .patches = 1, .image_token_id = 6, .varied = true};
  Sample sample;
  sample.text.tokens = {1, 6, 6, 6, 7, 6, 6, 2};
  sample.text.trainable = {{7, 8}};
  sample.text.image_begin = {1, 5};
  sample.grids = {{.width = 2, .height = 2, .tiles = 3, .columns = 2, .tokens = 3},
                  {.width = 4, .height = 2, .tokens = 2}};
  sample.pixels.assign(3 * 12 + 24, 5);
  MicroBatch batch = empty_micro_batch(layout);
  append_sample(words({1, 2}), 0, layout, batch);
  append_sample(sample, 1, layout, batch);
  CHECK(batch.image_token_index == std::vector<int32_t>{3, 4, 5, 7, 8});
  CHECK(batch.images == 4);
  CHECK(batch.grids == sample.grids);
  CHECK(batch.pixels.size() == 60);
}

TEST_CASE("collate: a stand-in of a varied set has its tiles, and no token stands for them") {
  const PictureLayout layout{
      .height = 2, .width = 2, .patches = 1, .image_token_id = 6, .varied = true};
  MicroBatch batch = empty_micro_batch(layout);
  append_sample(stand_in({.tokens = 5, .images = 2, .targets = 1}, layout), 3, layout, batch);
  CHECK(batch.images == 2);
  CHECK(batch.image_token_index.empty());
  CHECK(batch.target_count == 0);
  CHECK(batch.pixels.size() == 24);
}

TEST_CASE("C12: end tokens stay targets and padding is known by length, whatever the pad id") {
  for (const int32_t pad : {0, 2}) {
    CAPTURE(pad);
    Sample sample = toy();
    sample.text.tokens.resize(24, pad);
    MicroBatch batch = empty_micro_batch(kLayout);
    append_sample(sample, 0, kLayout, batch);
    // Position i predicts token i + 1: the end tokens 12 and 19 are what 11 and 18 learn.
    std::vector<int32_t> targets(24, kIgnore);
    for (const size_t i : {9, 10, 11, 16, 17, 18}) targets[i] = sample.text.tokens[i + 1];
    CHECK(batch.targets == targets);
    CHECK(batch.target_count == 6);
    CHECK((batch.targets[11] == 2 && batch.targets[18] == 2));
  }
}
