#include "lib/run/grid_drawing.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/image/decode.h"
#include "lib/image/encode.h"
#include "lib/run/encode_dataset.h"
#include "lib/run/memory_estimate.h"
#include "lib/run/model_family.h"
#include "lib/run/scheduled_grid.h"
#include "tests/run/tiny_diffusion.h"
#include "tests/run/tiny_encoders.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> with_grids(std::vector<std::string> set) {
  set.insert(set.end(), {"sample.every_steps=3", "sample.prompts=[\"cat\", \"red dog\"]",
                         "sample.columns=2", "sample.rows=2", "sample.steps=2"});
  return set;
}

std::vector<fs::path> files_of(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string events(const fs::path& run) {
  std::string all;
  for (const fs::path& file : files_of(run / "tb")) all += mm::read_file(file);
  return all;
}

mm::image::Image picture(const fs::path& file) {
  const std::string bytes = mm::read_file(file);
  return mm::image::decode({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()})
      .value()
      .image;
}

}  // namespace

TEST_CASE("grids on a schedule: training is the same to the bit, pictures on any ranks, resumed") {
  TempDir dir;
  const Outcome plain = run_threads(tiny_diffusion_recipe(dir.path()), dir / "plain", 2);
  const Recipe recipe = tiny_diffusion_recipe(dir.path(), with_grids({}));
  const Outcome drawn = run_threads(recipe, dir / "drawn", 2);
  CHECK(same_bits(plain, drawn));
  for (size_t i = 0; i < plain.records.size(); ++i)
    CHECK(plain.records[i].loss == drawn.records[i].loss);
  const std::vector<fs::path> files = files_of(dir / "drawn/samples");
  REQUIRE(files.size() == 2);
  CHECK(files[0].filename() == "step-000003.png");
  CHECK(files[1].filename() == "step-000006.png");
  CHECK(picture(files[1]).width == 2 * 10 + 2);
  CHECK(mm::read_file(files[0]) != mm::read_file(files[1]));
  const std::string tensorboard = events(dir / "drawn");
  for (const fs::path& file : files)
    CHECK(tensorboard.find(mm::read_file(file)) != std::string::npos);
  CHECK(tensorboard.find("samples/grid") != std::string::npos);
  CHECK(!fs::exists(dir / "plain/samples"));

  // Rows dealt over more ranks than there are rows, or drawn by one: the same pictures.
  for (const int ranks : {1, 3}) {
    const fs::path run = dir / std::to_string(ranks);
    run_threads(tiny_diffusion_recipe(dir.path(), with_grids({"ema.decay=0", "stage.0.steps=3",
                                                              "stage.0.lr.text_encoder=0",
                                                              "stage.0.lr.transformer=0"})),
                run, ranks);
  }
  CHECK(mm::read_file(dir / "1/samples/step-000003.png") ==
        mm::read_file(dir / "3/samples/step-000003.png"));

  run_threads(recipe, dir / "resumed", 2, {.stop_after = 4});
  run_threads(recipe, dir / "resumed", 2);
  for (const fs::path& file : files)
    CHECK(mm::read_file(dir / "resumed/samples" / file.filename()) == mm::read_file(file));
}

TEST_CASE("grids on a schedule: the grid of the last step is what sample draws of the checkpoint") {
  const std::vector<std::vector<std::string>> runs{
      {"precision.compute=fp32"},
      {"precision.compute=bf16"},
      {"precision.compute=bf16", "ema.decay=0"},
      {"precision.compute=fp32", "sample.size=12x8", "sample.guide_three=true"}};
  for (std::vector<std::string> keys : runs) {
    CAPTURE(keys.back());
    TempDir dir;
    keys.emplace_back("stage.0.steps=3");
    const Recipe recipe = tiny_diffusion_recipe(dir.path(), with_grids(keys));
    run_threads(recipe, dir / "run", 1);
    const TrainedDiffusion trained = open_trained_diffusion(dir / "run");
    DrawOptions options = usual_drawing(trained);
    set_sampler(options, "auto", 2);
    options.guidance = {.scale = 4, .channels = recipe.sample.guide_three ? 3 : 0};
    if (recipe.sample.width > 0) options.size = {.height = 8, .width = 12};
    options.batch = 2;
    const Condition cat = caption_condition(trained, "cat"),
                    dog = caption_condition(trained, "red dog");
    const auto pictures = draw_pictures(trained, *trained.params, {cat, dog, cat, dog}, options);
    CHECK(mm::image::encode_png(picture_grid(pictures, 2)) ==
          mm::read_file(dir / "run/samples/step-000003.png"));
  }
}

TEST_CASE("grids on a schedule: rank 0 alone draws where drawing takes models no stage loads") {
  TempDir dir;
  tiny_diffusion_recipe(dir.path());
  encode_dataset(
      {.dataset = dir / "pictures", .encoders = {.vae = tiny_vae()}, .output = dir / "latents"});
  const auto set = mm::data::read_manifest(dir / "pictures");
  const auto every_rank = [&](const std::vector<std::string>& more) {
    std::vector<std::string> keys =
        with_grids({"model.vae=" + tiny_vae().string(), "model.transformer.patch=1"});
    keys.insert(keys.end(), more.begin(), more.end());
    const Recipe recipe = tiny_diffusion_recipe(dir.path(), keys);
    return make_family(recipe, {set})->every_rank_draws();
  };
  CHECK(every_rank({}));
  const std::string stored = "stage.0.encoded=" + (dir / "latents").string();
  CHECK(!every_rank({stored}));
  const Recipe recipe = tiny_diffusion_recipe(
      dir.path(), with_grids({"model.vae=" + tiny_vae().string(), "model.transformer.patch=1",
                              "stage.0.steps=3", "comm.timeout_s=5", stored}));
  run_threads(recipe, dir / "run", 2);
  CHECK(picture(dir / "run/samples/step-000003.png").width == 2 * 10 + 2);
}

TEST_CASE(
    "grids on a schedule: of latents through the recipe's VAE; wrong conditions are refused") {
  TempDir dir;
  const Recipe recipe = tiny_diffusion_recipe(
      dir.path(), with_grids({"model.vae=" + tiny_vae().string(), "model.transformer.patch=1",
                              "stage.0.steps=3"}));
  run_threads(recipe, dir / "run", 2);
  CHECK(picture(dir / "run/samples/step-000003.png").width == 2 * 10 + 2);
  const auto refused = [&](const std::vector<std::string>& set, const char* why) {
    CHECK_THROWS_WITH_AS(run_threads(tiny_diffusion_recipe(dir.path(), set), dir / "refused", 1),
                         doctest::Contains(why), mm::Error);
  };
  refused({"sample.every_steps=3", "sample.labels=[\"cat\"]"}, "draws by caption; give --prompt");
  refused(with_grids({"sample.labels=[\"cat\"]"}), "give prompts or labels");
  refused({"sample.every_steps=-1"}, "out of range");
  refused({"sample.sampler=ddim"}, "a flow is drawn by euler");
  refused(with_grids({"sample.size=10x8"}),
          "sample.size 10x8: sides are multiples of the model's patch, 4 pixels");
}

TEST_CASE("grids on a schedule: copies of weights that are not kept in fp32 are estimated") {
  TempDir dir;
  const auto estimate = [&](const std::vector<std::string>& keys,
                            const std::vector<std::string>& train = kDiffusionParts) {
    Recipe recipe = tiny_diffusion_recipe(dir.path(), keys);
    recipe.stages[0].train = train;
    const auto set = mm::data::Dataset::open(dir / "pictures");
    const auto family = make_family(recipe, {set->manifest()});
    const mm::model::Model model = family->build();
    CHECK(draws_rows(recipe.sample, *family, 1));
    CHECK(!draws_rows(recipe.sample, *family, 2));
    return stage_memory({recipe, 0, model, *family, *set}).estimate;
  };
  const MemoryEstimate raw = estimate(with_grids({"precision.compute=bf16", "ema.decay=0"})),
                       averaged = estimate(with_grids({"precision.compute=bf16"})),
                       frozen = estimate(with_grids({"precision.compute=bf16"}), {"transformer"});
  CHECK(estimate({"precision.compute=float64"}).drawing == 0);
  CHECK(raw.drawing == 0);  // by masters
  CHECK(averaged.drawing == 0);
  CHECK(averaged.masters == 2 * raw.masters);
  CHECK(frozen.drawing > 0);  // of a text encoder that has bf16 alone
  CHECK(frozen.drawing < raw.weights);
  const MemoryEstimate proof = estimate(with_grids({"precision.compute=float64"}));
  CHECK(proof.drawing == proof.weights / 2);
  MemoryEstimate large{.activations = 5e9, .pictures = 1e9, .drawing = 3e9};
  CHECK(large.total() == 6e9);
  large.drawing = 8e9;
  CHECK(large.total() == 8e9);
  CHECK(memory_shortage(large, 7e9, "train").find("in place of the last three 7.45") !=
        std::string::npos);
}
