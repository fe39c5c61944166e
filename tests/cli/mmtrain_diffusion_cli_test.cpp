// What users see of a class-conditional diffusion run: idx files in, the published recipe, pictures
// and a validation loss out.
#include <doctest/doctest.h>

#include <algorithm>

#include "lib/image/decode.h"
#include "tests/cli/mmtrain_process.h"

using namespace mm;
using namespace mm::test;
using mm::data::test::TempDir;

namespace {

constexpr const char* kRecipe = MM_TEST_DATA "/../recipes/fashion-mnist.toml";

std::string idx(const std::vector<uint32_t>& sizes, const std::string& bytes) {
  std::string file{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) {
    for (const unsigned shift : {24U, 16U, 8U, 0U})
      file.push_back(static_cast<char>(size >> shift));
  }
  return file + bytes;
}

/// Twelve pictures of 28 x 28, a bright square that is wider for each of three classes.
void write_idx(const std::filesystem::path& dir) {
  std::string pixels, labels;
  for (int i = 0; i < 12; ++i) {
    labels.push_back(static_cast<char>(i % 3));
    for (int p = 0; p < 28 * 28; ++p)
      pixels.push_back(p % 28 < 7 * (i % 3 + 1) ? static_cast<char>(200 + i) : '\0');
  }
  write_file_atomic(dir / "t-images-idx3-ubyte", idx({12, 28, 28}, pixels));
  write_file_atomic(dir / "t-labels-idx1-ubyte", idx({12}, labels));
  write_file_atomic(dir / "names.txt", "Trouser\nT-shirt/top\nBag\n");
}

Ended mmtrain(const TempDir& dir, std::vector<std::string> arguments) {
  return Mmtrain(dir.path(), std::move(arguments)).wait();
}

/// `mmshard pack` as the recipe's head has it.
void pack(const TempDir& dir) {
  write_idx(dir.path());
  Child child = Child::spawn(
      {.command = {MM_BIN_DIR "/mmshard", "pack", (dir / "t-images-idx3-ubyte").string(), "--out",
                   (dir / "data").string(), "--labels", "label", "--class-names",
                   (dir / "names.txt").string(), "--geometry", "buckets", "--buckets", "28x28",
                   "--quiet"},
       .environment = {},
       .output = dir / "packed"});
  const auto status = child.wait_for(60);
  REQUIRE(status);
  REQUIRE_MESSAGE(status->ok(), read_file(dir / "packed"));
}

/// The recipe's command line for the packed pictures, its model small.
std::vector<std::string> recipe_words(const TempDir& dir, const std::string& verb) {
  return {verb,    kRecipe,
          "--set", "stage.0.data=" + (dir / "data").string(),
          "--set", "model.transformer.hidden=16",
          "--set", "model.transformer.layers=1",
          "--set", "model.transformer.heads=2",
          "--set", "model.transformer.patch=7",
          "--set", "model.transformer.grid_side=4",
          "--set", "stage.0.batch_pixels=3136",
          "--set", "stage.0.steps=3"};
}

/// Packs and trains three steps in DIR/run.
std::string train(const TempDir& dir) {
  pack(dir);
  std::vector<std::string> words = recipe_words(dir, "run");
  words.insert(words.end(), {"--run", (dir / "run").string()});
  const Ended ended = mmtrain(dir, words);
  REQUIRE_MESSAGE(ended.status.ok(), ended.output);
  return (dir / "run").string();
}

void check_usage_error(const TempDir& dir, std::vector<std::string> arguments, const char* what) {
  const Ended ended = mmtrain(dir, std::move(arguments));
  CHECK(ended.status.code == 2);
  CHECK_MESSAGE(std::count(ended.output.begin(), ended.output.end(), '\n') == 1, ended.output);
  CHECK_MESSAGE(ended.output.find(what) != std::string::npos, ended.output);
}

image::Image picture(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  return image::decode({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()})
      .value()
      .image;
}

}  // namespace

TEST_CASE("recipes/fashion-mnist.toml: check accepts it for packed idx files, whole and small") {
  const TempDir dir;
  pack(dir);
  const Ended whole =
      mmtrain(dir, {"check", kRecipe, "--set", "stage.0.data=" + (dir / "data").string()});
  CHECK_MESSAGE(whole.status.ok(), whole.output);
  CHECK(whole.output.find(": good; ") != std::string::npos);
  const Ended small = mmtrain(dir, recipe_words(dir, "check"));
  CHECK_MESSAGE(small.status.ok(), small.output);
}

TEST_CASE("recipes/fashion-vae.toml: check accepts it, two steps train, eval rebuilds pictures") {
  const TempDir dir;
  pack(dir);
  const std::string recipe = MM_TEST_DATA "/../recipes/fashion-vae.toml";
  const std::string data = "stage.0.data=" + (dir / "data").string();
  const Ended whole = mmtrain(dir, {"check", recipe, "--set", data});
  CHECK_MESSAGE(whole.output.find(": good; ") != std::string::npos, whole.output);
  const std::string run = (dir / "run").string();
  const Ended trained =
      mmtrain(dir, {"run", recipe, "--run", run, "--set", data, "--set",
                    "model.autoencoder.channels=[8, 8]", "--set", "model.autoencoder.groups=4",
                    "--set", "stage.0.steps=2", "--set", "stage.0.batch_pixels=3136"});
  CHECK_MESSAGE(trained.status.ok(), trained.output);
  const std::string pictures = (dir / "data").string();
  const Ended rebuilt = mmtrain(dir, {"eval", "--from", run, "--data", pictures, "--limit", "5"});
  REQUIRE_MESSAGE(rebuilt.status.ok(), rebuilt.output);
  for (const char* word : {"samples 5", "averaged true", " l1 ", " psnr ", " ssim "})
    CHECK_MESSAGE(rebuilt.output.find(word) != std::string::npos, rebuilt.output);
  const Ended reported = mmtrain(dir, {"report", run});
  REQUIRE_MESSAGE(reported.status.ok(), reported.output);
  CHECK(read_file(dir / "run/report.html").find("each beside its reconstruction") !=
        std::string::npos);
  check_usage_error(dir, {"eval", "--from", run, "--data", pictures, "--judge", run},
                    "an autoencoder, which is scored by its reconstructions");
  for (const char* option : {"--encoded", "--vae", "--text-encoder", "--text-padding", "--answers"})
    check_usage_error(dir, {"eval", "--from", run, "--data", pictures, option, "7"},
                      (std::string(option) + ": " + run + " is an autoencoder").c_str());
}

TEST_CASE("a run on latents: grids while it trains, sample and eval through its VAE") {
  const TempDir dir;
  pack(dir);
  const std::string vae = MM_TEST_DATA "/oracles/vae", run = (dir / "run").string();
  std::vector<std::string> words = recipe_words(dir, "run");
  words.insert(words.end(),
               {"--run", run, "--set", "model.vae=" + vae, "--set", "sample.every_steps=2", "--set",
                "sample.labels=[\"Bag\", \"1\"]", "--set", "sample.columns=2", "--set",
                "sample.rows=1", "--set", "sample.steps=2"});
  const Ended trained = mmtrain(dir, words);
  REQUIRE_MESSAGE(trained.status.ok(), trained.output);
  CHECK(picture(dir / "run/samples/step-000002.png").width == 2 * 30 + 2);

  const Ended drawn = mmtrain(dir, {"sample", "--from", run, "--label", "Bag", "--steps", "2"});
  CHECK_MESSAGE(drawn.status.ok(), drawn.output);
  CHECK(picture(dir / "run/sample.png").width == 28 + 4);
  const Ended other = mmtrain(
      dir, {"sample", "--from", run, "--label", "Bag", "--vae", MM_TEST_DATA "/oracles/vae_seed5"});
  CHECK(other.status.code == 65);
  CHECK_MESSAGE(
      other.output.find("--vae: the run was trained on the output of") != std::string::npos,
      other.output);

  const std::string data = (dir / "data").string(), latents = (dir / "latents").string();
  Child encode =
      Child::spawn({.command = {MM_BIN_DIR "/mmshard", "encode", data, latents, "--vae", vae},
                    .environment = {},
                    .output = dir / "encoded"});
  REQUIRE(encode.wait_for(60).value().ok());
  const auto verify = [&] {
    Child child = Child::spawn({.command = {MM_BIN_DIR "/mmshard", "verify", latents},
                                .environment = {},
                                .output = dir / "verified"});
    const int code = child.wait_for(60).value().code;
    return std::pair{code, read_file(dir / "verified")};
  };
  CHECK(verify().first == 0);
  CHECK(verify().second.find(": sound") != std::string::npos);
  const auto mean_of = [&](std::vector<std::string> more) {
    std::vector<std::string> line{"eval", "--from", run, "--data", data, "--json"};
    line.insert(line.end(), more.begin(), more.end());
    const Ended ended = mmtrain(dir, line);
    REQUIRE_MESSAGE(ended.status.ok(), ended.output);
    return parse_json(ended.output, "stdout")
        .at("tasks")
        .at("validation_loss")
        .at("mean")
        .get<double>();
  };
  CHECK(mean_of({}) == doctest::Approx(mean_of({"--encoded", latents})).epsilon(1e-4));
  check_usage_error(dir,
                    {"eval", "--from", run, "--data", data, "--encoded", latents, "--vae", vae},
                    "--vae: --encoded has what it would make");
  std::filesystem::resize_file(dir / "latents/unit-0000000.safetensors", 1000);
  CHECK(verify().first == 65);
  CHECK(verify().second.find("1000 bytes, the manifest says") != std::string::npos);
}

TEST_CASE(
    "mmtrain sample --label: names and numbers, a PNG of the grid's size, JSON that says so") {
  const TempDir dir;
  const std::string run = train(dir);
  const Ended text =
      mmtrain(dir, {"sample", "--from", run, "--label", "0", "1", "--grid", "2x2", "--steps", "2"});
  CHECK_MESSAGE(text.status.ok(), text.output);
  CHECK(text.output.find("4 pictures of 28x28, step 3 (averaged)") != std::string::npos);
  const image::Image grid = picture(dir / "run" / "sample.png");
  CHECK(grid.width == 2 * 30 + 2);
  CHECK(grid.height == 2 * 30 + 2);

  const std::string out = (dir / "named.png").string();
  const Ended named = mmtrain(dir, {"sample", "--from", run, "--label", "Trouser", "T-shirt/top",
                                    "--grid", "2x2", "--steps", "2", "--json", "--out", out});
  CHECK_MESSAGE(named.status.ok(), named.output);
  const Json json = parse_json(named.output, "stdout");
  CHECK(json.at("file") == out);
  CHECK(json.at("pictures") == 4);
  CHECK(json.at("columns") == 2);
  CHECK(json.at("width") == 28);
  CHECK(json.at("step") == 3);
  CHECK(read_file(out) == read_file(dir / "run" / "sample.png"));
}

TEST_CASE("mmtrain sample: wrong labels, prompts and runs are usage errors of one line") {
  const TempDir dir;
  const std::string run = train(dir);
  check_usage_error(dir, {"sample", "--from", run, "--label", "Trousr"},
                    "--label Trousr: no name of a class, and no number of 0 to 2; did you mean "
                    "\"Trouser\"?");
  check_usage_error(dir, {"sample", "--from", run, "--label", "3"}, "no number of 0 to 2");
  check_usage_error(dir, {"sample", "--from", run, "--prompt", "a bag"}, "draws by class");
  check_usage_error(dir, {"sample", "--from", run, "--label", "0", "--prompt", "a bag"},
                    "give one");
  check_usage_error(dir, {"sample", "--from", run, "--grid", "2"},
                    "--grid 2: expected two numbers");
  check_usage_error(dir, {"sample", "--from", run, "--size", "30x28"}, "multiples of the model's");

  const TempDir other;
  const std::string recipe = write_recipe(other.path()).string(), llava = (other / "run").string();
  const Ended trained = mmtrain(dir, {"run", recipe, "--run", llava, "--set", "stage.0.steps=1"});
  REQUIRE_MESSAGE(trained.status.ok(), trained.output);
  check_usage_error(dir, {"sample", "--from", llava, "--label", "0"}, "draws no pictures");
}

TEST_CASE("mmtrain eval of a diffusion run: the loss at fixed times, printed and in eval.json") {
  const TempDir dir;
  const std::string run = train(dir), data = (dir / "data").string();
  const Ended text = mmtrain(dir, {"eval", "--from", run, "--data", data});
  CHECK_MESSAGE(text.status.ok(), text.output);
  CHECK(text.output.find("over 12 pictures, averaged weights") != std::string::npos);
  const Json stored = read_json_file(dir / "run" / "eval.json");
  const Json& loss = stored.at("tasks").at("validation_loss");
  CHECK(stored.at("step") == 3);
  CHECK(loss.at("samples") == 12);
  REQUIRE(loss.at("by_step").size() == 8);
  CHECK(loss.at("by_step").contains("62"));
  CHECK(loss.at("variance_terms").size() == 8);
  double sum = 0;
  for (const Json& one : loss.at("by_step")) sum += one.get<double>();
  CHECK(loss.at("mean").get<double>() == doctest::Approx(sum / 8));
  const Ended again = mmtrain(dir, {"eval", "--from", run, "--data", data, "--json"});
  CHECK(parse_json(again.output, "stdout") == stored);
  check_usage_error(dir, {"eval", "--from", run, "--data", data, "--task", "perplexity"},
                    "the tasks are questions to a LLaVA");
}
