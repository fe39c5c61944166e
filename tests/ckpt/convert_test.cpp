#include "lib/ckpt/convert.h"

#include <doctest/doctest.h>

#include <fstream>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/ckpt/commit.h"
#include "lib/ckpt/find.h"
#include "lib/ckpt/hf_index.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using mm::ckpt::test::filled;
using mm::ckpt::test::floats;
using mm::ckpt::test::TempDir;
namespace fs = std::filesystem;

namespace {

constexpr auto kOwn = ConvertOptions::To::kOwn;

void write_text(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

/// A model directory of three tensors in different types.
fs::path make_hf(const fs::path& directory, const std::string& config = "{\"model_type\": \"x\"}") {
  fs::create_directories(directory);
  const auto a = filled(24, 1), b = filled(8, 2), c = filled(6, 3);
  const std::vector<TensorSource> tensors = {{"a.weight", DType::kF32, {2, 3}, a, {}},
                                             {"b.weight", DType::kI64, {1}, b, {}},
                                             {"c.weight", DType::kBF16, {3}, c, {}}};
  write_safetensors(directory / "model.safetensors", tensors);
  write_text(directory / "config.json", config);
  write_text(directory / "tokenizer.json", "{}");
  return directory;
}

void check_equal_tensors(const fs::path& left, const fs::path& right) {
  const HfWeights a = HfWeights::open(left), b = HfWeights::open(right);
  REQUIRE(a.tensors().size() == b.tensors().size());
  for (const auto& [name, tensor] : a.tensors()) {
    CHECK(tensor.entry->dtype == b.at(name).entry->dtype);
    CHECK(tensor.entry->shape == b.at(name).entry->shape);
    CHECK(tensor.read() == b.at(name).read());
  }
}

}  // namespace

TEST_CASE("convert: Hugging Face to own and back gives equal bytes, configuration and side files") {
  const TempDir dir;
  const fs::path in = make_hf(dir / "in");
  convert(resolve_target(in), dir / "own", {.to = kOwn});
  CHECK(find_newest(dir / "own/ckpt", {.threads = 1}).found());
  const Conversion back = convert(resolve_target(dir / "own"), dir / "out", {});
  CHECK(back.tensors == 3);
  check_equal_tensors(in, dir / "out");
  CHECK(mm::read_json_file(dir / "out/config.json") == mm::read_json_file(in / "config.json"));
  CHECK(fs::exists(dir / "out/tokenizer.json"));
}

TEST_CASE("convert: small shards get an index, and a tensor larger than a shard its own file") {
  const TempDir dir;
  const fs::path in = make_hf(dir / "in");
  const Conversion done = convert(resolve_target(in), dir / "out", {.max_shard_bytes = 16});
  CHECK(done.files == 2);
  CHECK(fs::exists(dir / "out/model-00002-of-00002.safetensors"));
  CHECK(mm::read_json_file(dir / "out/model.safetensors.index.json")["metadata"]["total_size"] ==
        38);
  check_equal_tensors(in, dir / "out");
}

TEST_CASE("convert: a type is given to floating-point tensors and to the configuration") {
  const TempDir dir;
  const fs::path in = make_hf(dir / "in", R"({"model_type": "x", "dtype": "float32"})");
  convert(resolve_target(in), dir / "out", {.dtype = DType::kBF16});
  const HfWeights out = HfWeights::open(dir / "out");
  CHECK(out.at("a.weight").entry->dtype == DType::kBF16);
  CHECK(out.at("b.weight").entry->dtype == DType::kI64);
  CHECK(mm::read_json_file(dir / "out/config.json")["dtype"] == "bfloat16");
}

TEST_CASE("convert: a checkpoint without a configuration is refused") {
  const TempDir dir;
  const fs::path step = test::save_two_ranks(dir / "ckpt", 5);
  CHECK_THROWS_WITH_AS(convert(resolve_target(step), dir / "out", {}),
                       doctest::Contains("no model configuration"), mm::DataError);
  CHECK(!fs::exists(dir / "out"));
}

TEST_CASE(
    "convert: a tensor cut by rows and columns comes out whole, optimizer state stays behind") {
  const TempDir dir;
  const auto top = floats({1, 2, 3}), bottom = floats({7, 8, 9}), right = floats({4, 10}),
             moment = floats({0});
  const std::vector<ShardTensor> parts = {
      {"w", DType::kF32, {2, 4}, {{0, 0}, {1, 3}}, top, {}},
      {"w", DType::kF32, {2, 4}, {{1, 0}, {1, 3}}, bottom, {}},
      {"w", DType::kF32, {2, 4}, {{0, 3}, {2, 1}}, right, {}},
      {"optimizer.exp_avg.w", DType::kF32, {1}, {}, moment, {}}};
  const std::string id = new_save_id();
  std::vector<ShardReport> reports;
  std::optional<CheckpointWriter> writer;
  for (size_t rank = parts.size(); rank-- > 0;) {
    writer.emplace(SaveInfo{.run_ckpt = dir / "run/ckpt",
                            .save_id = id,
                            .rank = static_cast<int>(rank),
                            .world_size = static_cast<int>(parts.size())});
    writer->begin();
    reports.insert(reports.begin(), writer->write_shard(std::span(parts).subspan(rank, 1)));
  }
  writer->commit(reports, {{"config", {{"model_type", "x"}}}});
  const Conversion done = convert(resolve_target(dir / "run"), dir / "out", {});
  CHECK(done.tensors == 1);
  CHECK(HfWeights::open(dir / "out").at("w").read() == floats({1, 2, 3, 4, 7, 8, 9, 10}));
}

TEST_CASE("convert: LLaVA's spellings become the published one") {
  const TempDir dir;
  fs::create_directories(dir / "in");
  const auto w = floats({1, 2});
  const std::vector<TensorSource> tensors = {
      {"model.mm_projector.0.weight", DType::kF32, {2}, w, {}},
      {"model.layers.0.self_attn.rotary_emb.inv_freq", DType::kF32, {2}, w, {}}};
  write_safetensors(dir / "in/model.safetensors", tensors);
  write_text(dir / "in/config.json", R"({"model_type": "llava"})");
  const Conversion done = convert(resolve_target(dir / "in"), dir / "out", {});
  CHECK(done.tensors == 1);
  CHECK(HfWeights::open(dir / "out").find("multi_modal_projector.linear_1.weight") != nullptr);
}

TEST_CASE(
    "convert: a directory of LLaVA's own code is refused: it does not hold its tower's sizes") {
  const TempDir dir;
  const fs::path in =
      make_hf(dir / "in", R"({"model_type": "llava_llama", "mm_vision_tower": "clip"})");
  CHECK_THROWS_WITH_AS(convert(resolve_target(in), dir / "out", {}),
                       doctest::Contains("config.json: the flat configuration of LLaVA's own code"),
                       mm::DataError);
  CHECK_FALSE(fs::exists(dir / "out"));
}

TEST_CASE("convert: LLaVA-NeXT, OneVision and Qwen2.5-VL there and back, from any spelling") {
  const TempDir dir;
  for (const std::string family : {"llava_next", "llava_onevision", "qwen2_5_vl"}) {
    CAPTURE(family);
    const fs::path in = fs::path(MM_TEST_DATA) / "oracles" / family;
    convert(resolve_target(in), dir / (family + "-own"), {.to = kOwn});
    convert(resolve_target(dir / (family + "-own")), dir / (family + "-out"), {});
    check_equal_tensors(in, dir / (family + "-out"));
    // The names that transformers has in memory.
    fs::create_directories(dir / (family + "-memory"));
    fs::copy_file(in / "config.json", dir / (family + "-memory") / "config.json");
    const HfWeights weights = HfWeights::open(in);
    std::vector<TensorSource> renamed;
    std::vector<std::vector<std::byte>> kept;
    for (const auto& [name, tensor] : weights.tensors()) {
      const bool qwen_decoder = family == "qwen2_5_vl" && name.starts_with("model.");
      const bool head = name.starts_with("lm_head");
      kept.push_back(tensor.read());
      renamed.push_back({.name = head           ? name
                                 : qwen_decoder ? "model.language_model." + name.substr(6)
                                                : "model." + name,
                         .dtype = tensor.entry->dtype,
                         .shape = tensor.entry->shape,
                         .bytes = kept.back()});
    }
    write_safetensors(dir / (family + "-memory") / "model.safetensors", renamed);
    convert(resolve_target(dir / (family + "-memory")), dir / (family + "-even"), {});
    check_equal_tensors(in, dir / (family + "-even"));
  }
}

TEST_CASE("C47: a tied model is exported with one table; a copy that differs is refused") {
  const TempDir dir;
  const auto table = floats({1, 2}), other = floats({1, 3});
  const auto make = [&](const char* name, bool tied, const std::vector<std::byte>& head) {
    fs::create_directories(dir / name);
    const std::vector<TensorSource> tensors = {
        {"model.embed_tokens.weight", DType::kF32, {2}, table, {}},
        {"lm_head.weight", DType::kF32, {2}, head, {}}};
    write_safetensors(dir / name / "model.safetensors", tensors);
    write_text(dir / name / "config.json",
               std::string(R"({"model_type": "llama", "tie_word_embeddings": )") +
                   (tied ? "true}" : "false}"));
    return resolve_target(dir / name);
  };
  CHECK(convert(make("equal", true, table), dir / "out1", {}).tensors == 1);
  CHECK(convert(make("apart", false, other), dir / "out2", {}).tensors == 2);
  CHECK_THROWS_WITH_AS(convert(make("differ", true, other), dir / "out3", {}),
                       doctest::Contains("lm_head.weight"), mm::DataError);
  CHECK(!fs::exists(dir / "out3"));
}

TEST_CASE("convert: refused inputs leave nothing behind") {
  const TempDir dir;
  const fs::path in = make_hf(dir / "in");
  CHECK_THROWS_WITH_AS(convert(resolve_target(in), in, {}), doctest::Contains("exists already"),
                       mm::UsageError);
  CHECK_THROWS_WITH_AS(convert(resolve_target(in / "model.safetensors"), dir / "out", {}),
                       doctest::Contains("config.json"), mm::DataError);
  fs::remove(in / "config.json");
  CHECK_THROWS_AS(convert(resolve_target(in), dir / "out", {}), mm::IoError);
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir.path())) ++entries;
  CHECK(entries == 1);
}
