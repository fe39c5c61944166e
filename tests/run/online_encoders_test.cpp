// Frozen encoders in front of a diffusion transformer: on the way, or stored before.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/run/encode_dataset.h"
#include "lib/run/trained_diffusion.h"
#include "lib/run/validation_loss.h"
#include "tests/run/online_runs.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;
namespace fs = std::filesystem;

namespace {

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).norm().item<double>() / b.norm().item<double>();
}

}  // namespace

TEST_CASE("online encoders: PixArt on a VAE and T5 has the losses of stored latents and states") {
  TempDir dir;
  const fs::path t5 = write_encoder(dir / "t5", tiny_t5_config(12), toy(), 5);
  const std::vector<std::string> keys = online_keys({t5});
  const Outcome online = run_with(dir, "online", keys);
  CHECK(online.weights.at("pos_embed.proj.weight").size(1) == 4);
  encode_dataset({.dataset = dir / "pictures",
                  .encoders = {.vae = tiny_vae(), .text = {t5}},
                  .output = dir / "stored"});
  const std::string stored = "stage.0.encoded=" + (dir / "stored").string();
  check_same_losses(run_with(dir, "stored-run", joined(keys, {stored})), online, 1e-6);
  const std::vector<std::string> parts = {"frozen.pictures_at_once=1", "frozen.captions_at_once=2"};
  check_same_losses(run_with(dir, "parts", joined(keys, parts)), online, 1e-6);
  const Outcome two = run_with(dir, "two", keys, 2);
  CHECK(weight_difference(online, two) < 1e-9);
  // Latents alone are stored, captions are encoded on the way.
  encode_dataset(
      {.dataset = dir / "pictures", .encoders = {.vae = tiny_vae()}, .output = dir / "latents"});
  check_same_losses(
      run_with(dir, "mixed", joined(keys, {"stage.0.encoded=" + (dir / "latents").string()})),
      online, 1e-6);
}

TEST_CASE("online encoders: MMDiT on CLIP, CLIP and T5 joined has the losses of one stored set") {
  TempDir dir;
  const std::vector<fs::path> text = three_encoders(dir);
  const std::vector<std::string> keys =
      joined(online_keys(text), {"model.family=sd3", "model.text_padding=9"});
  tiny_diffusion_recipe(dir.path());
  const Outcome online = run_with(dir, "online", keys);
  encode_dataset({.dataset = dir / "pictures",
                  .encoders = {.vae = tiny_vae(), .text = text, .text_padding = 9},
                  .output = dir / "stored"});
  const EncodedManifest manifest = read_encoded_manifest(dir / "stored");
  CHECK(manifest.settings.text_models.size() == 3);
  CHECK(manifest.settings.text_width == 24);
  CHECK(manifest.settings.pooled_width == 8 + 10);
  CHECK(manifest.settings.text_length == 12 + 9);
  const std::string stored = "stage.0.encoded=" + (dir / "stored").string();
  check_same_losses(run_with(dir, "stored-run", joined(keys, {stored})), online, 1e-6);
  CHECK(weight_difference(online, run_with(dir, "two", keys, 2)) < 1e-9);

  const auto refused = [&](const std::vector<std::string>& more, const char* why) {
    CHECK_THROWS_WITH_AS(run_with(dir, "refused", joined(keys, more)), doctest::Contains(why),
                         mm::Error);
  };
  refused({stored, "model.text_padding=8"}, "stored by the text encoder");
  refused({stored, "model.text_model_2=" + text[0].string()}, "stored by the text encoder");
  refused({stored, "stage.0.augment.flip_probability=0.5"}, "augment changes pixels");
  refused({"model.text_model=" + text[2].string()}, "several text models are CLIP encoders");
}

TEST_CASE("text_padding is a part of what a run goes on with, whether latents are stored or not") {
  TempDir dir;
  const fs::path t5 = write_encoder(dir / "t5", tiny_t5_config(12), toy(), 5);
  tiny_diffusion_recipe(dir.path());
  encode_dataset(
      {.dataset = dir / "pictures", .encoders = {.vae = tiny_vae()}, .output = dir / "latents"});
  const auto keys = joined(online_keys({t5}), {"stage.0.steps=2", "model.text_padding=6",
                                               "stage.0.encoded=" + (dir / "latents").string()});
  run_with(dir, "run", keys);
  run_with(dir, "run", keys);
  CHECK_THROWS_WITH_AS(run_with(dir, "run", joined(keys, {"model.text_padding=7"})),
                       doctest::Contains("model.text_padding: 6 in the checkpoint, 7 now"),
                       mm::Error);
  // States of before the key was among them go on.
  const mm::Json now = resume_contract(tiny_diffusion_recipe(dir.path(), keys));
  mm::Json saved = now;
  saved.erase("model.text_padding");
  CHECK(contract_known_to(saved, now) == saved);
  CHECK(contract_known_to(now, now) == now);
}

TEST_CASE("caption encoders: states joined side by side, then T5's; each in its own ids") {
  TempDir dir;
  const std::vector<fs::path> text = three_encoders(dir);
  const CaptionEncoders all(text, 9, toy());
  CHECK(all.shape().width == 24);
  CHECK(all.shape().length == 21);
  // "a cat" in the toy's ids, and in those of the reversed one.
  const std::vector<int32_t> caption{1, 10, 11};
  const CaptionEncoders::States states = all.encode({caption, {1, 12}});
  REQUIRE(states.hidden.size() == 2);
  CHECK(states.hidden[0].sizes() == at::IntArrayRef({21, 24}));
  const auto alone = [&](size_t i, std::vector<int64_t> ids, int64_t length) {
    const mm::model::LoadedTextEncoder encoder(text[i], at::kFloat);
    mm::model::PaddedText padded =
        mm::model::pad_text({ids}, {.length = length, .id = encoder.encoder().pad_id});
    if (i == 2) padded.mask.fill_(true);
    return encoder.encode(padded);
  };
  const mm::model::EncodedText l = alone(0, {1, 10, 11}, 12), g = alone(1, {1, 14, 13}, 12),
                               t5 = alone(2, {1, 10, 11, 1}, 9);
  const at::Tensor& got = states.hidden[0];
  CHECK(distance(got.narrow(0, 0, 12).narrow(1, 0, 8), l.penultimate[0]) < 1e-6);
  CHECK(distance(got.narrow(0, 0, 12).narrow(1, 8, 12), g.penultimate[0]) < 1e-6);
  CHECK(got.narrow(0, 0, 12).narrow(1, 20, 4).abs().max().item<float>() == 0);
  CHECK(distance(got.narrow(0, 12, 9), t5.hidden[0]) < 1e-6);
  CHECK(distance(states.pooled[0], at::cat({l.pooled[0], g.pooled[0]})) < 1e-6);

  CHECK_THROWS_WITH_AS(CaptionEncoders({text[1]}, 0, toy()),
                       doctest::Contains("none of its tokenizer files"), mm::DataError);
  fs::remove(text[1] / "tokenizer.json");
  CHECK_THROWS_WITH_AS(CaptionEncoders(text, 9, toy()), doctest::Contains("no tokenizer.json"),
                       mm::DataError);
  // As Stable Diffusion's directories have it.
  for (const char* name : {"vocab.json", "merges.txt", "special_tokens_map.json"})
    fs::copy_file(fs::path(MM_TEST_DATA) / "text/fixtures/clip" / name, text[1] / name);
  const CaptionTokenizers old = open_caption_tokenizers(text, 9, toy());
  REQUIRE(old.own[1] != nullptr);
  CHECK(old.own[1]->encode_whole("a CAT") == std::vector<int32_t>{762, 320, 517, 339, 763});
  CHECK(old.writing[1].tokenizer ==
        mm::xxh3_128_hex(mm::text::read_tokenizer(text[1] / "vocab.json")));
  CHECK(old.writing[1].pad_id == 0);  // "!", its pad_token
}

TEST_CASE("caption encoders: CLIP's captions are filled up with its tokenizer's pad_token") {
  TempDir dir;
  const fs::path clip = write_encoder(dir / "clip", tiny_clip_config(8, 0), toy(), 3);
  const auto states = [&] { return CaptionEncoders({clip}, 0, toy()).encode({{1, 11}}).hidden[0]; };
  const auto say = [&](const mm::Json& pad) {
    mm::write_file_atomic(clip / "tokenizer_config.json", mm::Json{{"pad_token", pad}}.dump());
  };
  constexpr int64_t kPad = 10;
  const std::string piece = mm::text::load_tokenizer(toy())->id_to_piece(kPad);
  const at::Tensor by_model = states();
  const mm::model::LoadedTextEncoder encoder(clip, at::kFloat);
  const at::Tensor expected =
      encoder.encode(mm::model::pad_text({{1, 11}}, {.length = 12, .id = kPad})).hidden[0];
  CHECK(distance(by_model, expected) > 1e-3);
  say(piece);
  CHECK(distance(states(), expected) < 1e-6);
  say({{"content", piece}});
  CHECK(distance(states(), expected) < 1e-6);
  say(nullptr);
  CHECK(distance(states(), by_model) < 1e-6);
  say("no such piece");
  CHECK_THROWS_WITH_AS(states(), doctest::Contains("is no piece of the tokenizer"), mm::DataError);
}

TEST_CASE("a run on encoders' output goes on with the same encoders only") {
  TempDir dir;
  const fs::path t5 = write_encoder(dir / "t5", tiny_t5_config(12), toy(), 5);
  const auto keys = joined(online_keys({t5}), {"stage.0.steps=2"});
  run_with(dir, "run", keys);
  run_with(dir, "run", keys);
  fs::remove_all(t5);
  write_encoder(dir / "t5", tiny_t5_config(12), toy(), 6);
  CHECK_THROWS_WITH_AS(run_with(dir, "run", keys),
                       doctest::Contains("trained on the output of another model.text_model"),
                       mm::Error);
}

TEST_CASE("drawing from a run of latents and embeddings: through its models, no others") {
  TempDir dir;
  const fs::path t5 = write_encoder(dir / "t5", tiny_t5_config(12), toy(), 5);
  run_with(dir, "run", joined(online_keys({t5}), {"precision.compute=fp32", "stage.0.steps=2"}));
  TrainedDiffusion trained = open_trained_diffusion(dir / "run");
  CHECK(trained.draws_latents());
  CHECK(trained.reads_embeddings());
  DrawOptions options = usual_drawing(trained);
  options.sampler.steps = 2;
  const Condition cat = caption_condition(trained, "cat");
  CHECK_THROWS_WITH_AS(draw_pictures(trained, *trained.params, {cat}, options),
                       doctest::Contains("needs the models they are of"), mm::UsageError);
  use_encoders(trained);
  CHECK(trained.factor() == 4);
  options.size = {.height = 8, .width = 12};
  options.guidance.scale = 2;
  const auto pictures = draw_pictures(trained, *trained.params, {cat, {}}, options);
  REQUIRE(pictures.size() == 2);
  CHECK(pictures[0].width == 12);
  CHECK(pictures[0].height == 8);
  CHECK(pictures[0].rgb != pictures[1].rgb);

  // Nothing is asked of a model whose output is stored.
  trained.encoders.reset();
  use_encoders(trained, {}, {.vae = false, .text = false});
  CHECK(trained.encoders == nullptr);
  use_encoders(trained, {}, {.vae = false});
  CHECK(trained.encoders->vae == nullptr);
  CHECK(trained.encoders->text != nullptr);
  CHECK_THROWS_WITH_AS(use_encoders(trained, {.vae = tiny_vae()}, {.vae = false}),
                       doctest::Contains("--vae: --encoded has what it would make"),
                       mm::UsageError);
  CHECK_THROWS_WITH_AS(use_encoders(trained, {.text = {t5}}, {.text = false}),
                       doctest::Contains("--text-encoder: --encoded has"), mm::UsageError);
  const mm::Json padded{{"vae", ""}, {"text_encoders", mm::Json::array()}, {"text_padding", 9}};
  CHECK_THROWS_WITH_AS(encoder_options(padded), doctest::Contains("--text-padding: of --text-"),
                       mm::UsageError);

  const fs::path other = write_encoder(dir / "other", tiny_t5_config(12), toy(), 6);
  CHECK_THROWS_WITH_AS(use_encoders(trained, {.text = {other}}),
                       doctest::Contains("--text-encoder: the run was trained on the output of"),
                       mm::DataError);
  const fs::path vae = fs::path(MM_TEST_DATA) / "oracles/vae_seed5";
  CHECK_THROWS_WITH_AS(use_encoders(trained, {.vae = vae}), doctest::Contains("--vae: the run"),
                       mm::DataError);
  trained.recipe.model.vae.clear();
  CHECK_THROWS_WITH_AS(use_encoders(trained), doctest::Contains("(--vae DIR)"), mm::UsageError);
}

TEST_CASE("validation loss of a run on latents: stored or encoded alike, other models refused") {
  TempDir dir;
  const fs::path t5 = write_encoder(dir / "t5", tiny_t5_config(12), toy(), 5);
  run_with(dir, "run", joined(online_keys({t5}), {"precision.compute=fp32", "stage.0.steps=2"}));
  encode_dataset({.dataset = dir / "pictures",
                  .encoders = {.vae = tiny_vae(), .text = {t5}},
                  .output = dir / "stored"});
  const auto set = mm::data::Dataset::open(dir / "pictures");
  const auto stored = EncodedSet::open(dir / "stored", *set);
  TrainedDiffusion trained = open_trained_diffusion(dir / "run");
  CHECK_THROWS_WITH_AS(validation_loss(trained, *trained.params, *set),
                       doctest::Contains("--encoded DIR"), mm::UsageError);
  const ValidationLoss of_stored =
      validation_loss(trained, *trained.params, *set, {.encoded = stored.get()});
  CHECK(of_stored.samples == 21);
  use_encoders(trained);
  const ValidationLoss of_encoded = validation_loss(trained, *trained.params, *set);
  for (size_t i = 0; i < of_stored.at.size(); ++i)
    CHECK(of_encoded.at[i].loss == doctest::Approx(of_stored.at[i].loss).epsilon(1e-5));
  // One part stored, the other made: captions through --text-encoder.
  encode_dataset(
      {.dataset = dir / "pictures", .encoders = {.vae = tiny_vae()}, .output = dir / "latents"});
  const auto latents = EncodedSet::open(dir / "latents", *set);
  trained.encoders.reset();
  use_encoders(trained, {.text = {t5}}, {.vae = false});
  const ValidationLoss of_both =
      validation_loss(trained, *trained.params, *set, {.encoded = latents.get()});
  CHECK(of_both.mean() == doctest::Approx(of_stored.mean()).epsilon(1e-5));
  trained.made_by.vae = "another";
  CHECK_THROWS_WITH_AS(validation_loss(trained, *trained.params, *set, {.encoded = stored.get()}),
                       doctest::Contains("stored by the VAE"), mm::DataError);
}
