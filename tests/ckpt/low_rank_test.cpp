#include "lib/ckpt/low_rank.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/ckpt/commit.h"
#include "lib/ckpt/convert.h"
#include "lib/ckpt/hf_names.h"
#include "lib/ckpt/inspect.h"
#include "lib/ckpt/peft.h"
#include "tests/base/temp_dir.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using mm::ckpt::test::floats;
using mm::ckpt::test::TempDir;
namespace fs = std::filesystem;

namespace {

const std::string kQ = "language_model.model.layers.0.self_attn.q_proj";
const std::string kTower = "vision_tower.vision_model.encoder.layers.0.self_attn.q_proj";
const std::string kProjector = "multi_modal_projector.linear_1";
constexpr const char* kLlava =
    R"({"model_type": "llava", "text_config": {"vocab_size": 8}, "image_token_index": 7})";

std::vector<float> wave(size_t count, float from) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(from + 0.7F * static_cast<float>(i));
  return values;
}

/// Tensors that own their bytes.
struct Owned {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorSource> tensors;
  void add(const std::string& name, std::vector<uint64_t> shape, const std::vector<float>& values) {
    bytes.push_back(floats(values));
    tensors.push_back({name, DType::kF32, std::move(shape), {}, {}});
  }
  std::vector<TensorSource>& list() {
    for (size_t i = 0; i < bytes.size(); ++i) tensors[i].bytes = bytes[i];
    return tensors;
  }
};

std::vector<float> values_of(const HfTensor& tensor) {
  const std::vector<std::byte> bytes = tensor.read();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

const std::vector<float> kW = wave(12, 1), kA = wave(8, 2), kB = wave(6, 3);

/// A model with one pair of rank 2 on a [3, 4] weight, another weight of that name in the tower, a
/// projector and tables of 8 rows.
fs::path write_model(const fs::path& directory, bool pair) {
  fs::create_directories(directory);
  Owned owned;
  owned.add(kQ + ".weight", {3, 4}, kW);
  owned.add(kTower + ".weight", {3, 4}, kW);
  owned.add(kProjector + ".weight", {2, 2}, wave(4, 5));
  owned.add("language_model.model.embed_tokens.weight", {8, 2}, wave(16, 6));
  if (pair) {
    owned.add(kQ + ".lora_A.weight", {2, 4}, kA);
    owned.add(kQ + ".lora_B.weight", {3, 2}, kB);
  }
  write_safetensors(directory / "model.safetensors", owned.list());
  std::ofstream(directory / "config.json") << kLlava;
  return directory;
}

/// The adapter of that pair in PEFT's layout; `change` edits its configuration.
fs::path write_adapter(const fs::path& directory, const mm::Json& change = mm::Json::object()) {
  fs::create_directories(directory);
  Owned owned;
  owned.add(peft_name(kQ + ".lora_A.weight"), {2, 4}, kA);
  owned.add(peft_name(kQ + ".lora_B.weight"), {3, 2}, kB);
  owned.add(peft_name(kProjector + ".weight"), {2, 2}, wave(4, 9));
  write_safetensors(directory / "adapter_model.safetensors", owned.list());
  mm::Json config = peft_config({2, 6}, {"base", {"q_proj"}, {"multi_modal_projector"}});
  config.update(change);
  mm::write_file_atomic(directory / "adapter_config.json", config.dump());
  return directory;
}

/// W + 6 / 2 B A in double.
void check_merged(const std::vector<float>& got) {
  REQUIRE(got.size() == 12);
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 4; ++column) {
      double sum = kW[row * 4 + column];
      for (size_t k = 0; k < 2; ++k) sum += 3.0 * kB[row * 2 + k] * kA[k * 4 + column];
      CHECK(got[row * 4 + column] == doctest::Approx(sum).epsilon(1e-6));
    }
  }
}

std::string refusal(const fs::path& adapter) {
  try {
    (void)open_peft(adapter);
  } catch (const mm::DataError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("merge: an adapter on its model gives W + alpha / rank B A, and its whole tensors") {
  const TempDir dir;
  const fs::path base = write_model(dir / "base", false), adapter = write_adapter(dir / "adapter");
  const Conversion done = convert(resolve_target(base), dir / "out", {.adapter = adapter});
  CHECK(done.tensors == 4);
  CHECK(done.notes.back() == "1 low-rank adapters merged, rank 2, alpha 6");
  const HfWeights out = HfWeights::open(dir / "out");
  check_merged(values_of(out.at(kQ + ".weight")));
  CHECK(values_of(out.at(kTower + ".weight")) == kW);
  CHECK(values_of(out.at(kProjector + ".weight")) == wave(4, 9));
}

TEST_CASE("an own checkpoint keeps its pairs, or merges them when asked; export merges them") {
  const TempDir dir;
  const fs::path base = write_model(dir / "base", false), adapter = write_adapter(dir / "adapter");
  using To = ConvertOptions::To;
  convert(resolve_target(base), dir / "own", {.to = To::kOwn, .adapter = adapter});
  convert(resolve_target(dir / "own"), dir / "hf", {});
  check_merged(values_of(HfWeights::open(dir / "hf").at(kQ + ".weight")));
  convert(resolve_target(dir / "own"), dir / "flat", {.to = To::kOwn, .merge_adapters = true});
  convert(resolve_target(dir / "flat"), dir / "hf2", {});
  const HfWeights flat = HfWeights::open(dir / "hf2");
  CHECK(flat.tensors().size() == 4);
  check_merged(values_of(flat.at(kQ + ".weight")));
  CHECK_THROWS_AS(convert(resolve_target(dir / "flat"), dir / "x", {.to = To::kPeft}),
                  mm::UsageError);
  CHECK_FALSE(fs::exists(dir / "x"));
}

TEST_CASE("the pairs of a checkpoint leave in PEFT's layout with equal bytes") {
  const TempDir dir;
  const fs::path base = write_model(dir / "base", false), adapter = write_adapter(dir / "adapter");
  using To = ConvertOptions::To;
  convert(resolve_target(base), dir / "own", {.to = To::kOwn, .adapter = adapter});
  convert(resolve_target(dir / "own"), dir / "peft", {.to = To::kPeft});
  const PeftAdapter back = open_peft(dir / "peft");
  CHECK(back.rank == 2);
  CHECK(back.alpha == 6);
  CHECK(values_of(back.tensors.at(kQ + ".lora_A.weight")) == kA);
  CHECK(values_of(back.tensors.at(kQ + ".lora_B.weight")) == kB);
  const HfWeights files = HfWeights::open(dir / "peft");
  CHECK(
      files.find("base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight") !=
      nullptr);
  // "q_proj" alone would name the tower's too.
  const mm::Json config = mm::read_json_file(dir / "peft" / "adapter_config.json");
  CHECK(config["target_modules"] == mm::Json{"model.language_model.layers.0.self_attn.q_proj"});
}

TEST_CASE("an adapter that would mean another sum is refused by name") {
  const TempDir dir;
  CHECK(refusal(write_adapter(dir / "1", {{"use_dora", true}})).find("use_dora is true") !=
        std::string::npos);
  CHECK(refusal(write_adapter(dir / "2", {{"alpha_pattern", {{"q_proj", 3}}}}))
            .find("alpha_pattern") != std::string::npos);
  CHECK(refusal(write_adapter(dir / "3", {{"peft_type", "LOHA"}})).find("\"LOHA\"") !=
        std::string::npos);
  CHECK(refusal(write_adapter(dir / "4", {{"r", 0}})).find("a rank of at least 1") !=
        std::string::npos);
  CHECK(refusal(write_adapter(dir / "5", {{"bias", "all"}})).find("bias is \"all\"") !=
        std::string::npos);
  CHECK(refusal(write_adapter(dir / "6")) == "none");
}

TEST_CASE("inspect says what an adapter directory is") {
  const TempDir dir;
  const Inspection seen = inspect(resolve_target(write_adapter(dir / "adapter")));
  CHECK(seen.tensors.size() == 3);
  REQUIRE(seen.notes.size() == 1);
  CHECK(seen.notes[0] ==
        "adapter \"LORA\": rank 2, alpha 6, dropout 0.0, modules [\"q_proj\"], whole "
        "[\"multi_modal_projector\"]");
}

TEST_CASE("a pair that fits no weight is refused by name, and nothing is left behind") {
  const TempDir dir;
  const fs::path base = write_model(dir / "base", false);
  const fs::path adapter = write_adapter(dir / "adapter", {{"r", 3}});
  convert(resolve_target(base), dir / "own", {.to = ConvertOptions::To::kOwn, .adapter = adapter});
  CHECK_THROWS_WITH_AS(convert(resolve_target(base), dir / "out", {.adapter = adapter}),
                       doctest::Contains("do not fit"), mm::DataError);
  CHECK_FALSE(fs::exists(dir / "out"));
  CHECK_THROWS_WITH_AS(convert(resolve_target(adapter), dir / "out", {}),
                       doctest::Contains("use mmckpt merge BASE"), mm::DataError);
}

TEST_CASE("transformers' names of a LLaVA's tensors, there and back") {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"vision_tower.vision_model.pre_layrnorm.bias", "model.vision_tower.pre_layrnorm.bias"},
      {"multi_modal_projector.linear_2.bias", "model.multi_modal_projector.linear_2.bias"},
      {"language_model.model.norm.weight", "model.language_model.norm.weight"},
      {"image_newline", "model.image_newline"},
      {"language_model.lm_head.weight", "lm_head.weight"}};
  for (const auto& [published, inside] : names) {
    CHECK(transformers_name(published) == inside);
    CHECK(published_llava_name(inside) == published);
    CHECK(peft_name(published) == "base_model.model." + inside);
  }
  for (const auto& [published, inside] : std::vector<std::pair<std::string, std::string>>{
           {"visual.merger.mlp.0.weight", "model.visual.merger.mlp.0.weight"},
           {"model.layers.0.mlp.up_proj.weight",
            "model.language_model.layers.0.mlp.up_proj.weight"}}) {
    CHECK(transformers_name(published) == inside);
    CHECK(published_name("qwen2_5_vl", inside) == published);
  }
}

TEST_CASE(
    "C49: rows that only fill a run's tables up are cut from the export, or kept when asked") {
  const TempDir dir;
  const auto table = floats(wave(16, 6)), head = floats(wave(16, 8));
  const std::vector<ShardTensor> tensors = {
      {"language_model.model.embed_tokens.weight",
       DType::kF32,
       {8, 2},
       {{0, 0}, {8, 2}},
       table,
       {}},
      {"language_model.lm_head.weight", DType::kF32, {8, 2}, {{0, 0}, {8, 2}}, head, {}}};
  CheckpointWriter writer({.run_ckpt = dir / "run/ckpt", .save_id = new_save_id()});
  writer.begin();
  const ShardReport report = writer.write_shard(tensors);
  writer.commit(std::span(&report, 1),
                {{"config", mm::Json::parse(kLlava)}, {"contract", {{"model.vocab", {0, 8}}}}});
  std::ofstream(dir / "run/data.json") << R"({"tokenizer": {"vocab_size": 5}})";
  convert(resolve_target(dir / "run"), dir / "cut", {});
  const HfWeights cut = HfWeights::open(dir / "cut");
  for (const char* name :
       {"language_model.model.embed_tokens.weight", "language_model.lm_head.weight"})
    CHECK(cut.at(name).entry->shape == std::vector<uint64_t>{5, 2});
  std::vector<float> real = wave(16, 6);
  real.resize(10);
  CHECK(values_of(cut.at("language_model.model.embed_tokens.weight")) == real);
  CHECK(mm::read_json_file(dir / "cut" / "config.json")["text_config"]["vocab_size"] == 5);
  convert(resolve_target(dir / "run"), dir / "kept", {.keep_filler_rows = true});
  const HfWeights kept = HfWeights::open(dir / "kept");
  CHECK(kept.at("language_model.lm_head.weight").entry->shape == std::vector<uint64_t>{8, 2});
}

TEST_CASE("a checkpoint's contract and a run's data.json of another type are named, not our bug") {
  const auto refusal = [](const mm::Json& contract, const char* data) {
    const TempDir dir;
    const auto table = floats(wave(16, 6));
    const std::vector<ShardTensor> tensors = {{"language_model.model.embed_tokens.weight",
                                               DType::kF32,
                                               {8, 2},
                                               {{0, 0}, {8, 2}},
                                               table,
                                               {}}};
    CheckpointWriter writer({.run_ckpt = dir / "run/ckpt", .save_id = new_save_id()});
    writer.begin();
    const ShardReport report = writer.write_shard(tensors);
    writer.commit(std::span(&report, 1),
                  {{"config", mm::Json::parse(kLlava)}, {"contract", contract}});
    std::ofstream(dir / "run/data.json") << data;
    return mm::test::message_of<mm::DataError>(
        [&] { convert(resolve_target(dir / "run"), dir / "out", {}); });
  };
  const mm::Json filled{{"model.vocab", {0, 8}}};
  CHECK(refusal(mm::Json::array({1}), "{}").find("\"contract\" of its state is no object") !=
        std::string::npos);
  CHECK(refusal({{"lora", 8}}, "{}").find("adapters without a rank or alpha") != std::string::npos);
  CHECK(refusal(filled, "[]").find("data.json: expected a data set's manifest") !=
        std::string::npos);
  CHECK(refusal(filled, R"({"tokenizer": []})").find("data.json: expected a data set's manifest") !=
        std::string::npos);
}
