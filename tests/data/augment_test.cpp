#include "lib/data/augment.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/error.h"

using namespace mm::data;

namespace {

/// [1, width, 3] with equal channels.
std::vector<uint8_t> row(std::vector<uint8_t> values) {
  std::vector<uint8_t> rgb;
  for (const uint8_t value : values) rgb.insert(rgb.end(), 3, value);
  return rgb;
}

}  // namespace

TEST_CASE("apply_change: shift replicates the edge, flip mirrors, gain rounds and clips") {
  auto rgb = row({10, 20, 30, 40});
  apply_change({.dx = 1}, 1, 4, rgb);
  CHECK(rgb == row({10, 10, 20, 30}));
  apply_change({.dx = -2}, 1, 4, rgb);
  CHECK(rgb == row({20, 30, 30, 30}));
  apply_change({.flip = true}, 1, 4, rgb);
  CHECK(rgb == row({30, 30, 30, 20}));
  apply_change({.gain = 1.25}, 1, 4, rgb);
  CHECK(rgb == row({38, 38, 38, 25}));
  rgb = row({200, 255});
  apply_change({.gain = 1.5}, 1, 2, rgb);
  CHECK(rgb == row({255, 255}));
}

TEST_CASE("apply_change: vertical shift moves whole rows") {
  std::vector<uint8_t> rgb = {1, 1, 1, 2, 2, 2, 3, 3, 3};
  apply_change({.dy = 1}, 3, 1, rgb);
  CHECK(rgb == std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 2, 2, 2});
}

TEST_CASE("draw_change: a function of seed, epoch, sample and picture, within its bounds") {
  const Augmentation options{
      .seed = 1, .shift_pixels = 3, .flip_probability = 0.5, .brightness = 0.2};
  std::set<std::pair<int32_t, int32_t>> shifts;
  int flips = 0;
  for (uint64_t id = 0; id < 500; ++id) {
    const auto change = draw_change(options, 4, id, 0);
    CHECK(change == draw_change(options, 4, id, 0));
    CHECK(std::abs(change.dx) <= 3);
    CHECK(std::abs(change.dy) <= 3);
    CHECK(change.gain >= 0.8);
    CHECK(change.gain <= 1.2);
    shifts.insert({change.dx, change.dy});
    flips += change.flip;
  }
  CHECK(shifts.size() == 49);
  CHECK(flips > 200);
  CHECK(flips < 300);
  CHECK(!(draw_change(options, 4, 1, 0) == draw_change(options, 5, 1, 0)));
  CHECK(!(draw_change(options, 4, 1, 0) == draw_change(options, 4, 1, 1)));
}

TEST_CASE("augment_pictures: the default changes nothing") {
  auto pixels = row({1, 2});
  const auto before = pixels;
  augment_pictures({}, 0, 0, {1, 2, 1, 6}, pixels);
  CHECK(pixels == before);
}

TEST_CASE("augment_pictures: each picture of a sample has its own draw") {
  const Augmentation augmentation{.seed = 4, .brightness = 1};
  std::vector<uint8_t> pixels(12, 100);
  augment_pictures(augmentation, 2, 7, {1, 2, 1, 6}, pixels);
  for (uint32_t picture = 0; picture < 2; ++picture) {
    std::vector<uint8_t> alone(6, 100);
    apply_change(draw_change(augmentation, 2, 7, picture), 1, 2, alone);
    CHECK(std::equal(alone.begin(), alone.end(), pixels.begin() + 6 * picture));
  }
  CHECK(pixels[0] != pixels[6]);
}

TEST_CASE("augmentation: values out of range are usage errors") {
  CHECK_THROWS_AS(check(Augmentation{.shift_pixels = -1}), mm::UsageError);
  CHECK_THROWS_AS(check(Augmentation{.flip_probability = -0.1}), mm::UsageError);
  CHECK_THROWS_AS(check(Augmentation{.brightness = 2}), mm::UsageError);
}

TEST_CASE(
    "drop_tokens: hides inputs of trained-on positions only, as a function of seed, epoch and "
    "sample, targets stay") {
  SampleText text;
  text.tokens = {1, 6, 6, 10, 11, 12, 13, 14, 15, 16};
  text.trainable = {{3, 10}};
  const auto dropped = [&](double chance, uint64_t epoch, uint64_t sample) {
    std::vector<int32_t> tokens = text.tokens;
    drop_tokens({.seed = 3, .token_drop = chance, .drop_token = 99}, epoch, sample, text, tokens);
    return tokens;
  };
  CHECK(dropped(0, 0, 0) == text.tokens);
  const std::vector<int32_t> all = dropped(1, 0, 0);
  CHECK(std::vector<int32_t>(all.begin(), all.begin() + 3) == std::vector<int32_t>{1, 6, 6});
  CHECK(std::count(all.begin(), all.end(), 99) == 7);
  CHECK(dropped(0.5, 1, 2) == dropped(0.5, 1, 2));
  int64_t hidden = 0;
  for (uint64_t sample = 0; sample < 1000; ++sample) {
    const std::vector<int32_t> tokens = dropped(0.5, 0, sample);
    hidden += std::count(tokens.begin(), tokens.end(), 99);
  }
  CHECK(hidden > 3200);
  CHECK(hidden < 3800);
}

TEST_CASE("augment: pictures of several tiles are not changed but refused") {
  const PictureLayout varied{.height = 2, .width = 2, .patches = 1, .varied = true};
  augment_pictures({}, 0, 0, varied, {});
  CHECK_THROWS_AS(augment_pictures({.flip_probability = 1}, 0, 0, varied, {}), mm::UsageError);
}
