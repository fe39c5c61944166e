#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/convert.h"
#include "lib/ckpt/hf_index.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/hf_load.h"
#include "lib/run/diffusion_batch.h"
#include "lib/run/diffusion_setup.h"
#include "lib/run/drawing_evaluation.h"
#include "lib/run/encode_dataset.h"
#include "lib/run/trained_diffusion.h"
#include "lib/state/load_state.h"
#include "tests/run/tiny_diffusion.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;

namespace {

/// Epoch and sample of all ledger lines.
std::multiset<std::pair<uint64_t, uint64_t>> seen(const std::filesystem::path& run) {
  std::multiset<std::pair<uint64_t, uint64_t>> samples;
  for (const LedgerRow& row : read_ledger(run)) {
    for (uint64_t sample : row.samples) samples.insert({row.epoch, sample});
  }
  return samples;
}

std::map<std::string, at::Tensor> averages(const std::filesystem::path& run) {
  const mm::state::Checkpoint checkpoint = mm::state::open_checkpoint(run);
  std::map<std::string, at::Tensor> tensors;
  std::vector<mm::state::StateTensor> wanted;
  for (const mm::ckpt::TensorRecord& record : checkpoint.manifest.tensors) {
    if (!record.name.starts_with("ema.")) continue;
    const std::vector<int64_t> shape(record.shape.begin(), record.shape.end());
    tensors[record.name] = at::empty(shape, at::kDouble);
    wanted.push_back({record.name, tensors[record.name]});
  }
  mm::state::load_tensors(checkpoint, wanted);
  return tensors;
}

void open_and_draw(const std::filesystem::path& run) {
  const TrainedDiffusion trained = open_trained_diffusion(run);
  draw_pictures(trained, *trained.params, {{}}, usual_drawing(trained));
}

/// transformers' MegatronBertModel of our text encoder: every tensor under its name.
void check_text_encoder(const std::filesystem::path& directory, const Outcome& outcome) {
  const mm::Json config = mm::read_json_file(directory / "config.json");
  CHECK(config.at("model_type") == "megatron-bert");
  CHECK(config.at("max_position_embeddings") == 8);
  CHECK(config.at("intermediate_size") == 32);
  const auto weights = mm::ckpt::HfWeights::open(directory);
  const auto value = [&](const std::string& name) {
    const mm::ckpt::HfTensor& tensor = weights.at(name);
    return mm::model::to_tensor(*tensor.file, *tensor.entry).to(at::kDouble);
  };
  const std::map<std::string, std::string> names{
      {"embed_tokens", "embeddings.word_embeddings"},
      {"position_embedding", "embeddings.position_embeddings"},
      {"layers.0.layer_norm1", "encoder.layer.0.attention.ln"},
      {"layers.0.self_attn.q_proj", "encoder.layer.0.attention.self.query"},
      {"layers.0.self_attn.k_proj", "encoder.layer.0.attention.self.key"},
      {"layers.0.self_attn.v_proj", "encoder.layer.0.attention.self.value"},
      {"layers.0.self_attn.out_proj", "encoder.layer.0.attention.output.dense"},
      {"layers.0.layer_norm2", "encoder.layer.0.ln"},
      {"layers.0.mlp.fc1", "encoder.layer.0.intermediate.dense"},
      {"layers.0.mlp.fc2", "encoder.layer.0.output.dense"},
      {"final_layer_norm", "encoder.ln"}};
  for (const auto& [ours, theirs] : names)
    CHECK_MESSAGE(
        value(theirs + ".weight").equal(outcome.weights.at("text_encoder." + ours + ".weight")),
        theirs);
  CHECK(value("encoder.layer.0.output.dense.bias")
            .equal(outcome.weights.at("text_encoder.layers.0.mlp.fc2.bias")));
  CHECK(value("embeddings.token_type_embeddings.weight").equal(at::zeros({1, 8}, at::kDouble)));
  CHECK(std::filesystem::exists(directory / "tokenizer.json"));
}

mm::data::MicroBatch two_pictures() {
  mm::data::MicroBatch mb;
  mb.tokens = {3, 4, 5};
  mb.cu_seqlens = {0, 2, 3};
  mb.images = 2;
  mb.height = mb.width = 4;
  mb.pixels.assign(2 * 4 * 4 * 3, 128);
  mb.sample_ids = {7, 11};
  mb.target_count = 2;
  return mb;
}

}  // namespace

TEST_CASE(
    "diffusion, law 1: 1, 2, 3 and 4 ranks on mixed resolutions give the same losses, weights and "
    "averages to 1e-9 in float64") {
  TempDir dir;
  const Recipe recipe = tiny_diffusion_recipe(dir.path());
  const Outcome one = run_threads(recipe, dir / "one", 1);
  REQUIRE(one.records.size() == 8);
  const auto average = averages(dir / "one");
  CHECK(average.size() == one.weights.size());
  for (int ranks : {2, 3, 4}) {
    const std::filesystem::path run = dir / std::to_string(ranks);
    const Outcome many = run_threads(recipe, run, ranks);
    CHECK_MESSAGE(weight_difference(one, many) < 1e-9, ranks);
    for (size_t i = 0; i < one.records.size(); ++i)
      CHECK(many.records[i].loss == doctest::Approx(one.records[i].loss).epsilon(1e-10));
    for (const auto& [name, value] : averages(run))
      CHECK_MESSAGE(at::allclose(value, average.at(name), 1e-9, 1e-12), name);
    CHECK(seen(run) == seen(dir / "one"));
  }
}

TEST_CASE("diffusion: each picture once an epoch, fillers are in no ledger") {
  TempDir dir;
  const Recipe recipe = tiny_diffusion_recipe(dir.path());
  const Outcome outcome = run_threads(recipe, dir / "run", 2);
  CHECK(outcome.code == mm::ExitCode::kDone);
  std::map<uint64_t, std::set<uint64_t>> by_epoch;
  for (const auto& [epoch, sample] : seen(dir / "run")) {
    CHECK(sample < 21);
    CHECK(by_epoch[epoch].insert(sample).second);
  }
  CHECK(by_epoch.at(0).size() == 21);
}

TEST_CASE("diffusion: dropped pictures are in no step, and named each epoch with the reason") {
  TempDir dir;
  const Recipe recipe = tiny_diffusion_recipe(dir.path(), {"stage.0.leftovers=drop"});
  run_threads(recipe, dir / "run", 2);
  run_threads(recipe, dir / "resumed", 1, {.stop_after = 3});
  run_threads(recipe, dir / "resumed", 2);
  const std::string text = mm::read_file(dir / "run/ledger/dropped.jsonl");
  CHECK(mm::read_file(dir / "resumed/ledger/dropped.jsonl") == text);
  std::map<uint64_t, std::set<uint64_t>> by_epoch;
  for (const auto& [epoch, sample] : seen(dir / "run")) by_epoch[epoch].insert(sample);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const mm::Json json = mm::Json::parse(line);
    CHECK(json.at("stage") == "draw");
    CHECK(json.at("reason").get<std::string>().starts_with("left over, as "));
    CHECK(std::set<std::string>{"8x8", "12x8", "8x12"}.contains(
        json.at("bucket").get<std::string>()));
    for (const uint64_t sample : json.at("samples"))
      CHECK(by_epoch[json.at("epoch").get<uint64_t>()].insert(sample).second);
  }
  CHECK(by_epoch.size() > 1);
  by_epoch.erase(std::prev(by_epoch.end()));  // perhaps not ended
  for (const auto& [epoch, samples] : by_epoch) CHECK(samples.size() == 21);
}

TEST_CASE(
    "diffusion, law 2: stopped and resumed is bit-equal to the run that never stopped, the moving "
    "average included (C42)") {
  TempDir dir;
  const Recipe recipe = tiny_diffusion_recipe(dir.path());
  const Outcome whole = run_threads(recipe, dir / "whole", 2);
  for (int64_t stop : {1, 3, 6}) {
    const std::filesystem::path run = dir / ("stop" + std::to_string(stop));
    CHECK(run_threads(recipe, run, 2, {.stop_after = stop}).code == mm::ExitCode::kSavedRunAgain);
    const Outcome resumed = run_threads(recipe, run, 2);
    CHECK_MESSAGE(same_bits(whole, resumed), stop);
    const auto expected = averages(dir / "whole");
    for (const auto& [name, value] : averages(run))
      CHECK_MESSAGE(value.equal(expected.at(name)), name);
  }
}

TEST_CASE(
    "C42: mmckpt convert exports the average, and with --raw-weights the weights themselves") {
  TempDir dir;
  const Outcome outcome = run_threads(tiny_diffusion_recipe(dir.path()), dir / "run", 1);
  const auto average = averages(dir / "run");
  const auto target = mm::ckpt::resolve_target(dir / "run");
  CHECK(mm::ckpt::convert(target, dir / "ema", {}).notes.size() == 2);
  mm::ckpt::convert(target, dir / "raw", {.raw_weights = true});
  const auto value = [&](const char* export_name, const std::string& name) {
    const auto weights = mm::ckpt::HfWeights::open(dir / export_name);
    const mm::ckpt::HfTensor& tensor = weights.at(name);
    return mm::model::to_tensor(*tensor.file, *tensor.entry).to(at::kDouble);
  };
  for (const auto& [name, raw] : outcome.weights) {
    CHECK_MESSAGE(value("raw", name).equal(raw), name);
    CHECK_MESSAGE(value("ema", name).equal(average.at("ema." + name)), name);
  }
  CHECK(mm::model::read_diffusion_config(dir / "ema/config.json").heads == 2);
  check_text_encoder(dir / "raw/text_encoder", outcome);
  std::string text = mm::read_file(dir / "diffusion.toml");
  const size_t sizes = text.find("[model.transformer]");
  text.erase(sizes, text.find("[diffusion]") - sizes);
  mm::write_file_atomic(dir / "again.toml", text);
  const Recipe again =
      read_recipe(dir / "again.toml", {"model.from=" + (dir / "ema").string(), "stage.0.steps=1",
                                       "stage.0.lr.transformer=0", "stage.0.lr.text_encoder=0"});
  CHECK(run_threads(again, dir / "again", 1)
            .weights.at("proj_out.weight")
            .equal(average.at("ema.proj_out.weight")));
}

TEST_CASE("draws of a sample depend on seed, epoch and sample alone, not on its place") {
  mm::model::DiffusionConfig config;
  config.family = mm::model::DiffusionFamily::kDit;
  config.classes = 10;
  const mm::model::Objective objective{.prediction = mm::model::Prediction::kVelocity};
  const PixelNorm norm{.mean = {0.5F, 0.5F, 0.5F}, .std = {0.5F, 0.5F, 0.5F}};
  const auto batch = [&](const mm::data::MicroBatch& mb, uint64_t epoch) {
    return to_diffusion_batch(mb, {.config = config,
                                   .objective = objective,
                                   .norm = norm,
                                   .draws = {.seed = 3, .epoch = epoch}});
  };
  mm::data::MicroBatch mb = two_pictures();
  const mm::model::Batch both = batch(mb, 0);
  std::swap(mb.sample_ids[0], mb.sample_ids[1]);
  const mm::model::Batch swapped = batch(mb, 0);
  CHECK(both.diffusion->noise[0].equal(swapped.diffusion->noise[1]));
  CHECK(both.diffusion->sigmas[1].equal(swapped.diffusion->sigmas[0]));
  CHECK(!both.diffusion->noise.equal(batch(two_pictures(), 1).diffusion->noise));
  CHECK(both.diffusion->labels.equal(at::tensor({3, 5}, at::kLong)));
  CHECK(both.diffusion->clean.max().item<float>() == doctest::Approx(128 / 127.5 - 1));
  mb.weights = {1, 0};
  CHECK(batch(mb, 0).diffusion->weights.equal(at::tensor({1.0F, 0.0F})));
  const mm::model::Batch none = batch({.cu_seqlens = {0}}, 0);
  CHECK(none.diffusion->clean.size(0) == 0);
}

TEST_CASE("drawing: a picture depends on its seed and prompt, not on its neighbours; sizes fit") {
  TempDir dir;
  run_threads(tiny_diffusion_recipe(dir.path(), {"precision.compute=fp32"}), dir / "run", 1);
  CHECK(is_diffusion_run(dir / "run"));
  const TrainedDiffusion trained = open_trained_diffusion(dir / "run");
  CHECK(trained.averaged);
  CHECK(!open_trained_diffusion(dir / "run", Weights::kRaw).averaged);
  DrawOptions options = usual_drawing(trained);
  options.sampler.steps = 3;
  options.guidance.scale = 2;
  options.size = {.height = 8, .width = 12};
  const Condition cat = caption_condition(trained, "cat"), dog = caption_condition(trained, "dog");
  const auto two = draw_pictures(trained, *trained.params, {cat, dog}, options);
  options.batch = 1;
  const auto apart = draw_pictures(trained, *trained.params, {cat, dog}, options);
  REQUIRE(two.size() == 2);
  CHECK(two[0].width == 12);
  CHECK(two[0].height == 8);
  for (size_t i = 0; i < 2; ++i) {
    int worst = 0;
    for (size_t b = 0; b < two[i].rgb.size(); ++b)
      worst = std::max(worst, std::abs(int{two[i].rgb[b]} - int{apart[i].rgb[b]}));
    CHECK(worst <= 1);
  }
  const mm::image::Image grid = picture_grid(two, 2, 1);
  CHECK(grid.width == 2 * 13 + 1);
  CHECK(grid.height == 10);
  DrawOptions by_ddim = options;
  set_sampler(by_ddim, "ddim", 3);
  CHECK_THROWS_WITH_AS(draw_pictures(trained, *trained.params, {cat}, by_ddim),
                       doctest::Contains("diffusion.predict = \"flow\"; expected euler"),
                       mm::UsageError);
  options.size = {.height = 8, .width = 10};
  CHECK_THROWS_WITH_AS(draw_pictures(trained, *trained.params, {cat}, options),
                       doctest::Contains("multiples of the model's patch, 4"), mm::UsageError);
  options.size = trained.usual_size();
  CHECK_THROWS_WITH_AS(draw_pictures(trained, *trained.params, {{.label = 1}}, options),
                       doctest::Contains("give --prompt"), mm::UsageError);
}

TEST_CASE("recipes and data sets that do not go together are refused in one line") {
  TempDir dir;
  const Recipe recipe = tiny_diffusion_recipe(dir.path());
  const auto set = mm::data::read_manifest(dir / "pictures");
  CHECK(configure_diffusion(recipe, {set}).text.vocab == set.tokenizer.vocab_size);
  auto no_buckets = set;
  no_buckets.pictures.buckets.clear();
  CHECK_THROWS_WITH_AS(configure_diffusion(recipe, {no_buckets}),
                       doctest::Contains("not a bucketed set"), mm::UsageError);
  CHECK_THROWS_WITH_AS(
      configure_diffusion(tiny_diffusion_recipe(dir.path(), {"model.transformer.patch=3"}), {set}),
      doctest::Contains("patches of 3 pixels do not divide"), mm::UsageError);
  Recipe by_class = recipe;
  by_class.model.family = "dit";
  CHECK_THROWS_WITH_AS(configure_diffusion(by_class, {set}),
                       doctest::Contains("dit draws by class"), mm::UsageError);
  auto labels = set;
  labels.tokenizer.kind = "labels";
  CHECK_THROWS_WITH_AS(configure_diffusion(recipe, {labels}), doctest::Contains("has classes"),
                       mm::UsageError);
  CHECK_THROWS_WITH_AS(tiny_diffusion_recipe(dir.path(), {"loss.reduction=sqrt"}),
                       doctest::Contains("diffusion.normalisation"), mm::UsageError);
  CHECK_THROWS_WITH_AS(tiny_diffusion_recipe(dir.path(), {"diffusion.learned_sigma=true"}),
                       doctest::Contains("only predict"), mm::UsageError);
  CHECK_THROWS_WITH_AS(tiny_diffusion_recipe(dir.path(), {"model.family=dit"}),
                       doctest::Contains("text_encoder"), mm::UsageError);
  CHECK_THROWS_WITH_AS(tiny_diffusion_recipe(dir.path(), {"stage.0.train=[\"vision\"]"}),
                       doctest::Contains("expected text_encoder or transformer"), mm::UsageError);
}

TEST_CASE("frechet_distance: by hand in one dimension, zero of equal sets, symmetric") {
  const at::Tensor a = at::tensor({0.0, 2.0}, at::kDouble).view({2, 1});
  const at::Tensor b = at::tensor({3.0, 7.0}, at::kDouble).view({2, 1});
  // Means 1 and 5, variances 2 and 8: 16 + 2 + 8 - 2 * 4.
  CHECK(frechet_distance(a, b) == doctest::Approx(18));
  CHECK(frechet_distance(b, a) == doctest::Approx(18));
  const at::Tensor many = at::arange(60, at::kDouble).sin().view({20, 3});
  CHECK(frechet_distance(many, many) == doctest::Approx(0).epsilon(1e-9));
}

TEST_CASE(
    "stored latents and embeddings: the trainer takes them on any ranks, other encoders' not") {
  TempDir dir;
  tiny_diffusion_recipe(dir.path());
  const std::filesystem::path vae = std::filesystem::path(MM_TEST_DATA) / "oracles/vae";
  encode_dataset(
      {.dataset = dir / "pictures", .encoders = {.vae = vae}, .output = dir / "latents"});
  const auto config = [&](const std::string& extra) {
    return std::vector<std::string>{"stage.0.encoded=" + (dir / "latents").string(),
                                    "model.transformer.patch=1", extra};
  };
  const Recipe recipe = tiny_diffusion_recipe(dir.path(), config("model.vae=" + vae.string()));
  const Outcome one = run_threads(recipe, dir / "one", 1);
  CHECK(one.weights.contains("pos_embed.proj.weight"));
  CHECK(one.weights.at("pos_embed.proj.weight").size(1) == 4);
  CHECK(weight_difference(one, run_threads(recipe, dir / "two", 2)) < 1e-9);
  CHECK_THROWS_WITH_AS(open_and_draw(dir / "one"),
                       doctest::Contains("draws latents or reads embeddings"), mm::UsageError);
  std::filesystem::copy(vae, dir / "vae");
  std::filesystem::permissions(dir / "vae/config.json", std::filesystem::perms::owner_all);
  std::ofstream(dir / "vae/config.json", std::ios::app) << " ";
  const Recipe other =
      tiny_diffusion_recipe(dir.path(), config("model.vae=" + (dir / "vae").string()));
  CHECK_THROWS_WITH_AS(run_threads(other, dir / "other", 1), doctest::Contains("stored by the VAE"),
                       mm::Error);
}
