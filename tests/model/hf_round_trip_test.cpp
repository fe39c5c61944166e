#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <functional>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/ckpt/convert.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/safetensors_writer.h"
#include "lib/model/hf_load.h"
#include "lib/model/llava.h"
#include "tests/base/temp_dir.h"
#include "tests/model/tiny_llava.h"

// Hugging Face directories of every family, in and out with equal bytes: tiny random weights in the
// exact layouts.
using namespace mm::model;
using mm::test::TempDir;
namespace ckpt = mm::ckpt;
namespace fs = std::filesystem;

namespace {

using Spelling = std::function<std::string(const std::string&)>;

std::string replaced(const std::string& name, const std::string& from, const std::string& to) {
  return name.starts_with(from) ? to + name.substr(from.size()) : name;
}

std::string published(const std::string& name) { return name; }
std::string in_memory(const std::string& name) {
  if (name == "language_model.lm_head.weight") return "lm_head.weight";
  return "model." + replaced(name, "language_model.model.", "language_model.");
}
std::string transformers_5(const std::string& name) {
  return replaced(in_memory(name), "model.vision_tower.vision_model.", "model.vision_tower.");
}
std::string original(const std::string& name) {
  if (name == "language_model.lm_head.weight") return "lm_head.weight";
  std::string out = replaced(name, "vision_tower.", "model.vision_tower.vision_tower.");
  out = replaced(out, "multi_modal_projector.linear_1", "model.mm_projector.0");
  out = replaced(out, "multi_modal_projector.linear_2", "model.mm_projector.2");
  out = replaced(out, "multi_modal_projector.linear", "model.mm_projector");
  return replaced(out, "language_model.model.", "model.");
}

/// Writes random weights of `config` in bf16 (fp32 norms) under other names, with a tokenizer.
fs::path write_model(const fs::path& directory, const LlavaConfig& config, const Spelling& spell) {
  fs::create_directories(directory);
  const Model model = build_llava(config);
  const SimpleParams params = test::lively_params(model, 3, at::kFloat);
  std::vector<at::Tensor> values;
  std::vector<ckpt::TensorSource> sources;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const ParamSpec& spec = model.params[i];
    const at::Tensor value = params.get(static_cast<ParamId>(i)).detach();
    const bool narrow = spec.shape.size() > 1;
    values.push_back((narrow ? value.to(at::kBFloat16) : value).contiguous());
    sources.push_back({.name = spell(spec.name),
                       .dtype = narrow ? ckpt::DType::kBF16 : ckpt::DType::kF32,
                       .shape = {spec.shape.begin(), spec.shape.end()},
                       .bytes = {static_cast<const std::byte*>(values.back().const_data_ptr()),
                                 values.back().nbytes()}});
  }
  ckpt::write_safetensors(directory / "model.safetensors", sources);
  mm::write_file_atomic(directory / "config.json", to_json(config).dump(2));
  mm::write_file_atomic(directory / "tokenizer.json", "{\"version\": \"1.0\"}");
  mm::write_file_atomic(directory / "preprocessor_config.json", "{\"size\": 8}");
  return directory;
}

std::map<std::string, std::vector<std::byte>> bytes_of(const fs::path& directory,
                                                       const Spelling& spell) {
  std::map<std::string, std::vector<std::byte>> bytes;
  const ckpt::HfWeights weights = ckpt::HfWeights::open(directory);
  for (const auto& [name, tensor] : weights.tensors()) bytes[spell(name)] = tensor.read();
  return bytes;
}

LlavaConfig configured(TextKind text, VisionKind vision) {
  LlavaConfig config = test::tiny_config();
  config.vision.kind = vision;
  if (vision == VisionKind::kSiglip) {
    config.keep_first_row = true;
    config.vision.pooling_head = true;
  }
  config.text.kind = text;
  if (text == TextKind::kMistral) config.text.sliding_window = 16;
  if (text == TextKind::kQwen2) config.text.qkv_bias = config.text.tied_head = true;
  if (text == TextKind::kQwen3) config.text.qk_norm = true;
  return config;
}

/// In as `spell` says, to our own format, out again in shards.
void check_round_trip(const LlavaConfig& config, const Spelling& spell) {
  const TempDir dir;
  const fs::path in = write_model(dir / "in", config, spell);
  using To = ckpt::ConvertOptions::To;
  ckpt::convert(ckpt::resolve_target(in), dir / "own", {.to = To::kOwn});
  const ckpt::Conversion out =
      ckpt::convert(ckpt::resolve_target(dir / "own"), dir / "out", {.max_shard_bytes = 10'000});
  CHECK(out.files > 2);
  CHECK(fs::exists(dir / "out" / "model.safetensors.index.json"));
  const bool same_bytes = bytes_of(dir / "out", spell) == bytes_of(in, published);
  CHECK(same_bytes);
  for (const char* file : {"config.json", "tokenizer.json", "preprocessor_config.json"})
    CHECK(mm::read_json_file(dir / "out" / file) == mm::read_json_file(in / file));
  const LoadedLlava a = load_llava(in), b = load_llava(dir / "out");
  for (size_t i = 0; i < a.values.size(); ++i) CHECK(at::equal(a.values[i], b.values[i]));
}

}  // namespace

TEST_CASE("every family of tower and decoder goes in and out with equal bytes, in several files") {
  for (const TextKind text :
       {TextKind::kLlama, TextKind::kMistral, TextKind::kQwen2, TextKind::kQwen3}) {
    for (const VisionKind vision : {VisionKind::kClip, VisionKind::kSiglip}) {
      CAPTURE(static_cast<int>(text));
      CAPTURE(static_cast<int>(vision));
      check_round_trip(configured(text, vision), published);
    }
  }
}

TEST_CASE(
    "the four spellings of LLaVA's names go in, the published one comes out, bytes are equal") {
  const LlavaConfig config = configured(TextKind::kLlama, VisionKind::kClip);
  for (const Spelling& spell :
       {Spelling(published), Spelling(in_memory), Spelling(transformers_5), Spelling(original)}) {
    CAPTURE(spell("vision_tower.vision_model.pre_layrnorm.weight"));
    check_round_trip(config, spell);
  }
}

TEST_CASE("a linear projector goes in under LLaVA's name or ours and out under ours") {
  LlavaConfig config = configured(TextKind::kLlama, VisionKind::kClip);
  config.projector = ProjectorKind::kLinear;
  for (const Spelling& spell : {Spelling(published), Spelling(in_memory), Spelling(original)})
    check_round_trip(config, spell);
}

TEST_CASE(
    "tower layers behind the feature layer are exported as they came, and no segment reads them") {
  const LlavaConfig config = configured(TextKind::kLlama, VisionKind::kClip);
  const Model model = build_llava(config);
  const std::vector<bool> used = params_in_use(model);
  const TempDir dir;
  const fs::path in = write_model(dir / "in", config, published);
  ckpt::convert(ckpt::resolve_target(in), dir / "out", {});
  const auto before = bytes_of(in, published), after = bytes_of(dir / "out", published);
  size_t unused = 0;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const std::string& name = model.params[i].name;
    const bool behind = name.find("encoder.layers.2.") != std::string::npos ||
                        name.find("post_layernorm") != std::string::npos;
    if (!name.starts_with("vision_tower.")) continue;
    CHECK(used[i] == !behind);
    const bool kept = after.at(name) == before.at(name);
    if (behind) CHECK(kept);
    unused += behind ? 1 : 0;
  }
  CHECK(unused == 16 + 2);
}
