#pragma once
// A diffusion run small enough for tests: pictures of three shapes, captions of a toy tokenizer.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lib/data/pack_dataset.h"
#include "tests/data/toy_source.h"
#include "tests/run/tiny_run.h"

namespace mm::run::test {

/// 21 pictures of 8x8, 12x8 and 8x12 pixels in DIR/pictures, and a PixArt with its own text encoder
/// for them, in float64, with a moving average.
inline Recipe tiny_diffusion_recipe(const std::filesystem::path& directory,
                                    const std::vector<std::string>& set = {}) {
  if (!std::filesystem::exists(directory / "pictures")) {
    data::test::write_jsonl(directory / "in.jsonl", data::test::good_rows(21));
    data::PackOptions options = data::test::toy_options(directory / "in.jsonl");
    options.pictures.geometry = "buckets";
    options.pictures.buckets = "8x8,12x8,8x12";
    data::pack_dataset(options, {.output = directory / "pictures", .threads = 1});
  }
  std::ofstream(directory / "diffusion.toml") << R"(
[run]
seed = 5
log_every = 1000
[model]
family = "pixart"
[model.transformer]
hidden = 16
layers = 2
heads = 2
patch = 4
grid_side = 2
[model.text_encoder]
hidden = 8
layers = 1
heads = 2
max_tokens = 8
[diffusion]
predict = "flow"
label_drop = 0.3
[ema]
decay = 0.9
warmup = "ratio"
[precision]
compute = "float64"
[[stage]]
name = "draw"
data = "pictures"
steps = 8
batch_pixels = 288
packs_per_step = 4
lr = { text_encoder = 3e-3, transformer = 3e-3 }
schedule = { warmup_steps = 2 }
)";
  return read_recipe(directory / "diffusion.toml", set);
}

}  // namespace mm::run::test
