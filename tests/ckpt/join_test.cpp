#include "lib/ckpt/join.h"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "lib/base/error.h"
#include "lib/ckpt/float_cast.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/mean_row.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_directories.h"

using namespace mm::ckpt;
using namespace mm::ckpt::test;
namespace fs = std::filesystem;

namespace {

const std::string kTable = "language_model.model.embed_tokens.weight",
                  kHead = "language_model.lm_head.weight";

float element(const std::vector<std::byte>& bytes, size_t index) {
  float value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

/// The table's rows, and their mean behind them.
void check_grown(const std::vector<std::byte>& grown, const std::vector<std::byte>& table,
                 size_t width) {
  REQUIRE(grown.size() == table.size() + width * sizeof(float));
  CHECK(std::memcmp(grown.data(), table.data(), table.size()) == 0);
  const size_t count = table.size() / sizeof(float);
  for (size_t column = 0; column < width; ++column) {
    double sum = 0;
    for (size_t at = column; at < count; at += width) sum += element(table, at);
    const double mean = sum * static_cast<double>(width) / static_cast<double>(count);
    CHECK(element(grown, count + column) == static_cast<float>(mean));
  }
}

void change_config(const fs::path& directory, const char* key, const mm::Json& value) {
  mm::Json config = mm::read_json_file(directory / "config.json");
  config[key] = value;
  mm::write_file_atomic(directory / "config.json", config.dump());
}

size_t entries_of(const fs::path& directory) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("join: CLIP and Llama become one LLaVA of published names and equal bytes") {
  const TempDir dir;
  const fs::path vision = write_clip(dir / "clip"), language = write_language(dir / "llama", 9);
  const Join done = join(vision, language, dir / "out/", {});
  CHECK(done.image_token == 9);
  CHECK(done.left_out == 3);
  const HfWeights out = HfWeights::open(dir / "out"), clip = HfWeights::open(vision),
                  llama = HfWeights::open(language);
  CHECK(done.tensors == out.tensors().size());
  CHECK(done.bytes == out.tensor_bytes());
  size_t expected = 0;
  for (const auto& [name, tensor] : clip.tensors()) {
    if (!name.starts_with("vision_model.") || name.ends_with("position_ids")) continue;
    CHECK_MESSAGE(out.at("vision_tower." + name).read() == tensor.read(), name);
    ++expected;
  }
  for (const auto& [name, tensor] : llama.tensors()) {
    if (name.ends_with("inv_freq")) continue;
    ++expected;
    const HfTensor& joined = out.at("language_model." + name);
    if ("language_model." + name == kTable || "language_model." + name == kHead) {
      CHECK(joined.entry->shape == std::vector<uint64_t>{10, 16});
      check_grown(joined.read(), tensor.read(), 16);
    } else {
      CHECK_MESSAGE(joined.read() == tensor.read(), name);
    }
  }
  CHECK(out.tensors().size() == expected);
  for (const auto& [name, tensor] : out.tensors()) CHECK(name.find("proj") != 0);
  // The settings: pictures as the tower's, words as the language model's.
  CHECK(mm::read_file(dir / "out/preprocessor_config.json") == R"({"crop_size": 4})");
  CHECK(mm::read_file(dir / "out/tokenizer.model") == "toy");
  CHECK(fs::exists(dir / "out/generation_config.json"));
  CHECK_FALSE(fs::exists(dir / "out/tokenizer.json"));
}

TEST_CASE("join: config.json in the published spelling") {
  const TempDir dir;
  const fs::path vision = write_clip(dir / "clip"), language = write_language(dir / "llama", 9);
  join(vision, language, dir / "out", {.feature_layer = -1, .dtype = DType::kBF16});
  const mm::Json config = mm::read_json_file(dir / "out/config.json");
  CHECK(config["architectures"] == mm::Json{"LlavaForConditionalGeneration"});
  CHECK(config["model_type"] == "llava");
  CHECK(config["image_token_index"] == 9);
  CHECK(config["torch_dtype"] == "bfloat16");
  CHECK(config["vision_feature_layer"] == -1);
  CHECK(config["vision_feature_select_strategy"] == "default");
  CHECK(config["tie_word_embeddings"] == false);
  CHECK(config["vision_config"] == tiny_vision_config("clip_vision_model"));
  CHECK(config["text_config"]["vocab_size"] == 10);
  CHECK(config["text_config"]["rms_norm_eps"] == 1e-5);
  CHECK_FALSE(config["text_config"].contains("torch_dtype"));
  const HfWeights out = HfWeights::open(dir / "out");
  for (const auto& [name, tensor] : out.tensors()) CHECK(tensor.entry->dtype == DType::kBF16);
  CHECK(out.notes().empty());
}

TEST_CASE(
    "join: an image token inside the tables takes a row as it is; behind them there is none") {
  const TempDir dir;
  const fs::path vision = write_clip(dir / "clip"), language = write_language(dir / "llama", 9);
  const HfWeights llama = HfWeights::open(language);
  for (const uint64_t token : {7, 9}) {
    CAPTURE(token);
    const fs::path to = dir / ("out" + std::to_string(token));
    CHECK(join(vision, language, to, {.image_token = token}).image_token == token);
    const mm::Json config = mm::read_json_file(to / "config.json");
    CHECK(config["image_token_index"] == token);
    CHECK(config["text_config"]["vocab_size"] == (token < 9 ? 9 : 10));
    const HfWeights out = HfWeights::open(to);
    CHECK((out.at(kTable).read() == llama.at("model.embed_tokens.weight").read()) == (token < 9));
  }
  CHECK_THROWS_WITH_AS(join(vision, language, dir / "none", {.image_token = 10}),
                       doctest::Contains("--image-token 10 is behind the vocabulary"),
                       mm::UsageError);
  CHECK_FALSE(fs::exists(dir / "none"));
}

TEST_CASE("join: a SigLIP tower alone, named either way, and a tied Qwen2; files of a given size") {
  const TempDir dir;
  const fs::path language = write_language(dir / "qwen", 9, "qwen2");
  for (const std::string prefix : {"vision_model.", ""}) {
    CAPTURE(prefix);
    const fs::path out = dir / ("out" + std::to_string(prefix.size()));
    const fs::path vision = write_siglip(dir / ("siglip" + prefix), prefix);
    const Join done = join(vision, language, out, {.max_shard_bytes = 2000});
    CHECK(done.files > 1);
    CHECK(done.left_out == 0);
    const HfWeights weights = HfWeights::open(out);
    CHECK(weights.find("vision_tower.vision_model.embeddings.patch_embedding.bias") != nullptr);
    CHECK(weights.find("language_model.model.layers.1.self_attn.q_proj.bias") != nullptr);
    CHECK(weights.find(kHead) == nullptr);
    const mm::Json config = mm::read_json_file(out / "config.json");
    CHECK(config["tie_word_embeddings"] == true);
    CHECK(config["vision_feature_select_strategy"] == "full");
    CHECK(config["vision_config"]["vision_use_head"] == false);
    CHECK(std::ranges::count_if(done.notes, [](const std::string& note) {
            return note.find("no preprocessor_config.json to copy") != std::string::npos;
          }) == 1);
  }
}

TEST_CASE(
    "join: the start of a LLaVA-NeXT has LLaVA 1.6's grids, that of a linear projector says so") {
  const TempDir dir;
  const fs::path vision = write_clip(dir / "clip"), language = write_language(dir / "llama", 9);
  join(vision, language, dir / "next", {.family = "llava_next", .projector = "linear"});
  const mm::Json config = mm::read_json_file(dir / "next/config.json");
  CHECK(config["architectures"] == mm::Json{"LlavaNextForConditionalGeneration"});
  CHECK(config["model_type"] == "llava_next");
  CHECK(config["projector_kind"] == "linear");
  CHECK(config["image_grid_pinpoints"] == mm::Json{{4, 8}, {8, 4}, {8, 8}, {12, 4}, {4, 12}});
  CHECK_THROWS_WITH_AS(join(vision, language, dir / "odd", {.family = "llava_onevision"}),
                       doctest::Contains("--family llava_onevision: expected llava or llava_next"),
                       mm::UsageError);
  CHECK_THROWS_WITH_AS(join(vision, language, dir / "odd", {.projector = "mlp3x_gelu"}),
                       doctest::Contains("--projector mlp3x_gelu"), mm::UsageError);
  CHECK_FALSE(fs::exists(dir / "odd"));
}

TEST_CASE("join: what does not belong is one line that names it, and nothing is left behind") {
  struct Case {
    std::function<void(const fs::path& vision, const fs::path& language)> change;
    const char* message;
  };
  const std::vector<Case> cases = {
      {[](const fs::path& v, const fs::path&) { change_config(v, "model_type", "dinov2"); },
       "model_type is dinov2; expected clip, clip_vision_model, siglip or siglip_vision_model"},
      {[](const fs::path& v, const fs::path&) { change_config(v, "vision_config", 3); },
       "no vision_config in it"},
      {[](const fs::path& v, const fs::path&) { write_language(v, 9); }, "model_type is llama"},
      {[](const fs::path&, const fs::path& l) { change_config(l, "model_type", "gpt2"); },
       "model_type is gpt2; expected llama, mistral, qwen2 or qwen3"},
      {[](const fs::path&, const fs::path& l) { change_config(l, "vocab_size", 12); },
       "is [9, 16], config.json states a vocabulary of 12"},
      {[](const fs::path&, const fs::path& l) { change_config(l, "vocab_size", -1); },
       "vocab_size is -1; expected a positive integer"},
      {[](const fs::path&, const fs::path& l) {
         write_language(l, 9, "qwen2");
         change_config(l, "tie_word_embeddings", false);
       },
       "no tensor lm_head.weight"},
      {[](const fs::path&, const fs::path& l) {
         fs::rename(l / "model.safetensors", l / "pytorch_model.bin");
       },
       "pytorch_model.bin is not read, save the model as safetensors"},
      {[](const fs::path& v, const fs::path&) {
         TinyWeights weights;
         weights.add("blocks.0.weight", {2});
         weights.write(v, tiny_vision_config("clip_vision_model"));
       },
       "blocks.0.weight has no place in a vision tower"}};
  for (const Case& c : cases) {
    CAPTURE(c.message);
    const TempDir dir;
    const fs::path vision = write_clip(dir / "clip"), language = write_language(dir / "llama", 9);
    c.change(vision, language);
    CHECK_THROWS_WITH_AS(join(vision, language, dir / "out", {}), doctest::Contains(c.message),
                         mm::DataError);
    CHECK(entries_of(dir.path()) == 2);
  }
}

TEST_CASE("join: an existing directory, a layer outside the tower, a missing config.json") {
  const TempDir dir;
  const fs::path vision = write_clip(dir / "clip"), language = write_language(dir / "llama", 9);
  CHECK_THROWS_WITH_AS(join(vision, language, language, {}), doctest::Contains("exists already"),
                       mm::UsageError);
  for (const int64_t layer : {-4, 3})
    CHECK_THROWS_WITH_AS(join(vision, language, dir / "out", {.feature_layer = layer}),
                         doctest::Contains("is outside a tower of 2 layers"), mm::UsageError);
  fs::remove(language / "config.json");
  CHECK_THROWS_AS(join(vision, language, dir / "out", {}), mm::IoError);
  CHECK_THROWS_AS(join(dir / "nowhere", language, dir / "out", {}), mm::IoError);
  CHECK(entries_of(dir.path()) == 2);
}

TEST_CASE("C49: a row of means behind a table that comes in parts, in its own type") {
  const std::vector<std::byte> wide = floats({1, -2, 4, 3, 6, 8}),
                               table = cast_floats(wide, DType::kF32, DType::kF16, "t");
  const TensorSource source{
      .name = "t", .dtype = DType::kF16, .shape = {3, 2}, .stream = [&](const ByteSink& sink) {
        sink(std::span(table).first(2));
        sink(std::span(table).subspan(2, 6));
        sink(std::span(table).subspan(8));
      }};
  const TensorSource grown = with_mean_row(source, "here");
  CHECK(grown.shape == std::vector<uint64_t>{4, 2});
  std::vector<std::byte> all;
  grown.stream(
      [&](std::span<const std::byte> part) { all.insert(all.end(), part.begin(), part.end()); });
  // Columns 1, 4, 6 and -2, 3, 8.
  CHECK(cast_floats(all, DType::kF16, DType::kF32, "t") ==
        cast_floats(
            cast_floats(floats({1, -2, 4, 3, 6, 8, 11.0F / 3, 3}), DType::kF32, DType::kF16, "t"),
            DType::kF16, DType::kF32, "t"));
  CHECK_THROWS_WITH_AS(with_mean_row({.name = "t", .dtype = DType::kI64, .shape = {3, 2}}, "here"),
                       doctest::Contains("here: t is I64 [3, 2]"), mm::DataError);
}
