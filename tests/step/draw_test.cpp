#include "lib/step/draw.h"

#include <doctest/doctest.h>

#include "lib/step/builder.h"
#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

Program frozen_tower_on_two_ranks(const model::Model& model) {
  BuildOptions options{
      .micro_batches = 2, .trainable = toy::all_but(model, {toy::kTower}), .data_ranks = 2};
  options.buckets = toy::make_buckets(model, options.trainable, 3);
  return build_step(model, options);
}

// From the first empty line on: the bands without head and table.
std::string bands(const std::string& text) { return text.substr(text.find("\n\n") + 2); }

}  // namespace

TEST_CASE("draw: runs are joined, reductions stand beside the backwards that they overlap with") {
  const model::Model model = toy::make_model();
  const std::string text = draw(frozen_tower_on_two_ranks(model), model);
  CHECK(bands(text) ==
        "compute  L0     F0.0-5 B0.5-1 L1     F1.0-5 B1.5-3 B1.2-1 .      N      C      U\n"
        "data     .      .      .      .      .      Rl     R0     R1     .      .      .\n");
  CHECK(text.find("segment   0  vision                       forward only\n") != std::string::npos);
  CHECK(text.find("segment   1  projector                    trains 1 of 1 parameters\n") !=
        std::string::npos);
  CHECK(text.find("group data: 2 ranks\n") != std::string::npos);
}

TEST_CASE("draw: long lists wrap into bands of the width asked for") {
  const model::Model model = toy::make_model();
  const std::string text =
      bands(draw(frozen_tower_on_two_ranks(model), model, {.width = 40, .join_runs = false}));
  CHECK(
      text.starts_with("compute  L0   F0.0 F0.1 F0.2 F0.3 F0.4\ndata     .    .    .    .    .    "
                       ".\n\ncompute  F0.5 "));
  size_t start = 0;
  for (size_t end = text.find('\n'); end != std::string::npos;
       start = end + 1, end = text.find('\n', start)) {
    CHECK(end - start <= 40);
  }
}
