// Recipes as a user meets them: the commands in a recipe's head pack tiny stand-ins for the
// published data, and `mmtrain check` accepts the recipe as it stands.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/run/import_command.h"
#include "lib/run/import_pack.h"
#include "tests/base/temp_dir.h"

namespace fs = std::filesystem;
using namespace mm;
using mm::test::TempDir;

namespace {

struct Output {
  int code = -1;
  std::string out, err;
};

/// A command line as a shell reads it, in `dir`, our programs in PATH.
Output shell(const fs::path& dir, const std::string& line) {
  const std::string command = fmt::format("cd '{}' && PATH='{}':\"$PATH\" && {} >stdout 2>stderr",
                                          dir.string(), MM_BIN_DIR, line);
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), read_file(dir / "stdout"), read_file(dir / "stderr")};
}

/// The value of a flag of a command.
std::string value_of(const std::vector<run::ImportFlag>& flags, const std::string& key) {
  for (const run::ImportFlag& flag : flags) {
    if (flag.key == key) return flag.value();
  }
  return "";
}

/// Stand-ins for all that `mmshard pack ...` reads: three conversations, pictures, a tokenizer.
void write_sources(const fs::path& dir, const std::string& source, const std::string& root,
                   const std::string& tokenizer) {
  fs::create_directories((dir / source).parent_path());
  fs::create_directories(dir / root);
  fs::create_directories((dir / tokenizer).parent_path());
  Json rows = Json::array();
  for (int i = 0; i < 3; ++i) {
    rows.push_back({{"id", std::to_string(i)},
                    {"image", "picture.png"},
                    {"conversations",
                     {{{"from", "human"}, {"value", "<image>\nWhat is it?"}},
                      {{"from", "gpt"}, {"value", "A small picture."}}}}});
  }
  write_file_atomic(dir / source, rows.dump());
  fs::copy_file(fs::path(MM_TEST_DATA) / "field/rgba.png", dir / root / "picture.png",
                fs::copy_options::overwrite_existing);
  if (!fs::exists(dir / tokenizer))
    fs::copy_file(fs::path(MM_TEST_DATA) / "oracles/tokenizers/sp_llama2/tokenizer.model",
                  dir / tokenizer);
}

/// A tiny model that reads pictures of 336 pixels, with the ids of a packed set. Linear layers of
/// its decoder have sides of 160, above the published rank of adapters.
void write_model(const fs::path& model, const fs::path& set) {
  const Json manifest = read_json_file(set / "manifest.json");
  const bool tiles = manifest.at("pictures").at("geometry") == "anyres";
  Json config = read_json_file(fs::path(MM_TEST_DATA) / "oracles" /
                               (tiles ? "llava_next" : "llava") / "config.json");
  const int64_t image = manifest.at("tokenizer").at("image_token_id");
  config["image_token_index"] = image;
  config["text_config"]["vocab_size"] =
      std::max<int64_t>(image + 1, manifest.at("tokenizer").at("vocab_size"));
  config["text_config"].update(Json{{"hidden_size", 160},
                                    {"intermediate_size", 160},
                                    {"num_attention_heads", 4},
                                    {"num_key_value_heads", 4},
                                    {"head_dim", 40}});
  config["vision_config"]["image_size"] = 336;
  config["vision_config"]["patch_size"] = 14;
  config["image_seq_length"] = 576;
  if (tiles)
    config["image_grid_pinpoints"] = {{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  fs::create_directories(model);
  write_file_atomic(model / "config.json", config.dump());
}

// Stand-ins of the published models around a diffusion transformer: config.json in full size, no
// weights, which `check` does not read.

void write_config(const fs::path& directory, const Json& config) {
  fs::create_directories(directory);
  write_file_atomic(directory / "config.json", config.dump());
}

Json vae_config(int64_t latents) {
  Json config{{"_class_name", "AutoencoderKL"},
              {"block_out_channels", {128, 256, 512, 512}},
              {"latent_channels", latents},
              {"layers_per_block", 2}};
  for (int i = 0; i < 4; ++i) {
    config["down_block_types"].push_back("DownEncoderBlock2D");
    config["up_block_types"].push_back("UpDecoderBlock2D");
  }
  return config;
}

Json clip_config(int64_t hidden, int64_t layers, int64_t heads) {
  return {{"model_type", "clip_text_model"},
          {"architectures", {"CLIPTextModelWithProjection"}},
          {"vocab_size", 49408},
          {"hidden_size", hidden},
          {"intermediate_size", 4 * hidden},
          {"num_hidden_layers", layers},
          {"num_attention_heads", heads},
          {"projection_dim", hidden},
          {"max_position_embeddings", 77}};
}

Json t5_xxl_config() {
  return {{"model_type", "t5"}, {"vocab_size", 32128},
          {"d_model", 4096},    {"d_kv", 64},
          {"d_ff", 10240},      {"num_heads", 64},
          {"num_layers", 24},   {"feed_forward_proj", "gated-gelu"}};
}

void write_encoders(const fs::path& models) {
  write_config(models / "sd-vae-ft-ema", vae_config(4));
  write_config(models / "t5-v1_1-xxl", t5_xxl_config());
  write_config(models / "sd3/vae", vae_config(16));
  write_config(models / "sd3/text_encoder", clip_config(768, 12, 12));
  write_config(models / "sd3/text_encoder_2", clip_config(1280, 32, 20));
  write_config(models / "sd3/text_encoder_3", t5_xxl_config());
}

/// Two pictures with captions, in folders named by two of 1,000 classes.
void write_pictures(const fs::path& dir, const std::string& source, const std::string& root) {
  const fs::path picture = fs::path(MM_TEST_DATA) / "field/rgba.png";
  std::string names;
  for (int i = 0; i < 1000; ++i) names += fmt::format("class{}\n", i);
  for (const char* name : {"class3", "class7"}) {
    const fs::path folder = root.empty() ? dir / source / name : dir / root;
    fs::create_directories(folder);
    fs::copy_file(picture, folder / fmt::format("{}.png", name));
  }
  if (root.empty()) return write_file_atomic((dir / source).parent_path() / "classes.txt", names);
  write_file_atomic(dir / source,
                    "{\"image\": \"class3.png\", \"text\": \"a red heart\"}\n"
                    "{\"image\": \"class7.png\", \"text\": \"a blue ball\"}\n");
}

/// The words of the first indented command in a recipe's head.
std::vector<std::string> pack_command(const std::string& text) {
  std::string block;
  for (size_t at = text.find("#   mmshard"); text.compare(at, 4, "#   ") == 0;) {
    const size_t end = text.find('\n', at);
    block += text.substr(at + 4, end - at - 4) + "\n";
    at = end + 1;
  }
  const run::ShellScript script =
      run::read_shell(block, {.origin = "head", .variables = {}, .arguments = {}});
  REQUIRE(!script.commands.empty());
  return script.commands[0].words;
}

/// Packs as the recipe's head says, writes the model, and checks it; `text` stands at `path`.
Output pack_and_check(const fs::path& dir, const fs::path& path, const std::string& text) {
  const std::vector<std::string> words = pack_command(text);
  REQUIRE(words.size() > 3);
  REQUIRE(words[1] == "pack");
  std::vector<std::string> strays;
  const auto flags = run::parse_flags(words, 1, strays);
  write_sources(dir, words[2], value_of(flags, "image_root"), value_of(flags, "tokenizer"));
  std::string line;
  for (const std::string& word : words) line += run::shell_quoted(word) + " ";
  const Output packed = shell(dir, line + "--quiet");
  REQUIRE_MESSAGE(packed.code == 0, packed.err);
  write_model(fs::path(dir / value_of(flags, "tokenizer")).parent_path(),
              dir / value_of(flags, "out"));
  return shell(dir, fmt::format("mmtrain check '{}'", path.string()));
}

}  // namespace

TEST_CASE("recipes/: what each published recipe's head says packs its data, and check accepts it") {
  for (const auto& entry : fs::directory_iterator(fs::path(MM_TEST_DATA) / "../recipes")) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("llava-")) continue;
    CAPTURE(name);
    const TempDir dir;
    fs::create_directories(dir.path() / "recipes");
    fs::create_directories(dir.path() / "runs/llava-1.5-stage1");
    fs::copy_file(entry.path(), dir.path() / "recipes" / name);
    const Output checked =
        pack_and_check(dir.path(), fs::path("recipes") / name, read_file(entry.path()));
    CHECK_MESSAGE(checked.code == 0, checked.err);
    CHECK(checked.out.find(": good; ") != std::string::npos);
  }
}

TEST_CASE(
    "recipes/: published diffusion recipes pack their data as their heads say, check accepts them, "
    "and the models have the published sizes") {
  struct Case {
    const char* name;
    double millions;  ///< of parameters, as published
    double tolerance;
  };
  for (const Case& c : {Case{"dit-xl-2.toml", 675, 1}, Case{"pixart-alpha.toml", 611, 1},
                        Case{"sd3-medium.toml", 2085, 2}}) {
    CAPTURE(c.name);
    const TempDir dir;
    fs::create_directories(dir.path() / "recipes");
    const fs::path recipe = fs::path(MM_TEST_DATA) / "../recipes" / c.name;
    fs::copy_file(recipe, dir.path() / "recipes" / c.name);
    write_encoders(dir.path() / "models");
    const std::vector<std::string> words = pack_command(read_file(recipe));
    std::vector<std::string> strays;
    const auto flags = run::parse_flags(words, 1, strays);
    write_pictures(dir.path(), words[2], value_of(flags, "image_root"));
    if (const std::string tokenizer = value_of(flags, "tokenizer"); !tokenizer.empty()) {
      fs::create_directories((dir.path() / tokenizer).parent_path());
      fs::copy_file(fs::path(MM_TEST_DATA) / (tokenizer.ends_with(".json")
                                                  ? "text/fixtures/toy_words.json"
                                                  : "oracles/tokenizers/sp_t5/spiece.model"),
                    dir.path() / tokenizer);
    }
    std::string line;
    for (const std::string& word : words) line += run::shell_quoted(word) + " ";
    const Output packed = shell(dir.path(), line + "--quiet");
    REQUIRE_MESSAGE(packed.code == 0, packed.err);
    const Output checked =
        shell(dir.path(), fmt::format("mmtrain check recipes/{} --json", c.name));
    REQUIRE_MESSAGE(checked.code == 0, checked.err);
    const double millions = parse_json(checked.out, "stdout").at("parameters").get<double>() / 1e6;
    CHECK(std::abs(millions - c.millions) < c.tolerance);
  }
}

TEST_CASE("mmtrain import-recipe: what it writes packs its data, and check accepts it") {
  struct Case {
    const char *script, *arguments;
  };
  for (const auto& [script, arguments] :
       {Case{"stage1.sh", ""}, Case{"stage2.sh", ""}, Case{"lora.sh", "lmsys/vicuna-7b-v1.5"}}) {
    CAPTURE(std::string(script));
    const TempDir dir;
    const Output made =
        shell(dir.path(), fmt::format("mmtrain import-recipe '{}/run/import/{}' {} --out made.toml",
                                      MM_TEST_DATA, script, arguments));
    REQUIRE_MESSAGE(made.code == 0, made.err);
    CHECK(made.out.find("made.toml: ") == 0);
    CHECK(made.err.find("no meaning here: ") != std::string::npos);
    CHECK(shell(dir.path(), "mmtrain check made.toml").code == 2);
    CHECK(shell(dir.path(), "mmtrain check made.toml --without-data").code == 0);
    const Output checked =
        pack_and_check(dir.path(), "made.toml", read_file(dir.path() / "made.toml"));
    CHECK_MESSAGE(checked.code == 0, checked.err);
  }
}

TEST_CASE("mmtrain import-recipe: stdout, JSON, flags behind --, exit codes") {
  const TempDir dir;
  const std::string flags =
      " --world 8 -- --model_name_or_path m --learning_rate 1e-3 --max_steps 5 --odd 1";
  const Output plain = shell(dir.path(), "mmtrain import-recipe" + flags);
  CHECK(plain.code == 0);
  CHECK(plain.out.find("\n[[stage]]\n") != std::string::npos);
  CHECK(plain.err.find("not mapped: --odd 1: ") != std::string::npos);
  const Output json = shell(dir.path(), "mmtrain import-recipe --json" + flags);
  const Json object = parse_json(json.out, "stdout");
  CHECK(json.err.empty());
  CHECK(object.at("recipe") == plain.out);
  CHECK(object.at("mapped").at(0).contains("setting"));
  CHECK(object.at("unmapped").at(0).contains("reason"));

  write_file_atomic(dir.path() / "bad.sh", "deepspeed train.py --model_name_or_path 'open\n");
  write_file_atomic(dir.path() / "none.sh", "echo nothing\n");
  struct Case {
    const char* arguments;
    int code;
  };
  for (const Case& c :
       {Case{"", 2}, Case{"nowhere.sh", 2}, Case{"bad.sh", 65}, Case{"none.sh", 65},
        Case{"bad.sh --world 0", 2}, Case{"bad.sh --var X", 2}, Case{"bad.sh --from fairseq", 2},
        Case{"-- --model_name_or_path m --learning_rate x", 65}}) {
    CAPTURE(c.arguments);
    const Output wrong = shell(dir.path(), fmt::format("mmtrain import-recipe {}", c.arguments));
    CHECK(wrong.code == c.code);
    CHECK(wrong.out.empty());
    CHECK(std::count(wrong.err.begin(), wrong.err.end(), '\n') == 1);
  }
}

TEST_CASE("mmtrain check --without-data: text and JSON name what is not there") {
  const TempDir dir;
  const fs::path recipe = fs::path(MM_TEST_DATA) / "../recipes/llava-1.5-stage1.toml";
  const Output text =
      shell(dir.path(), fmt::format("mmtrain check '{}' --without-data", recipe.string()));
  CHECK(text.code == 0);
  CHECK(text.out.find("not there: ") != std::string::npos);
  const Json json = parse_json(
      shell(dir.path(), fmt::format("mmtrain check '{}' --without-data --json", recipe.string()))
          .out,
      "stdout");
  CHECK(json.at("paths").at(0).at("key") == "model.from");
  const Output wrong = shell(
      dir.path(),
      fmt::format("mmtrain check '{}' --without-data --set stage.0.stepss=3", recipe.string()));
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("steps") != std::string::npos);
}
