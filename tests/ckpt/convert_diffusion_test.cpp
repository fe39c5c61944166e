#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/ckpt/convert.h"
#include "lib/ckpt/original_names.h"
#include "tests/ckpt/original_layouts.h"
#include "tests/ckpt/temp_dir.h"
#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;
using namespace mm::ckpt::test;
namespace fs = std::filesystem;

namespace {

constexpr auto kOwn = ConvertOptions::To::kOwn;
const fs::path kOracles = fs::path(MM_TEST_DATA) / "oracles";

void check_equal(const fs::path& left, const fs::path& right) {
  const HfWeights a = HfWeights::open(left), b = HfWeights::open(right);
  REQUIRE(a.tensors().size() == b.tensors().size());
  for (const auto& [name, tensor] : a.tensors()) {
    CAPTURE(name);
    REQUIRE(b.find(name) != nullptr);
    CHECK(tensor.entry->dtype == b.at(name).entry->dtype);
    CHECK(tensor.entry->shape == b.at(name).entry->shape);
    CHECK(tensor.read() == b.at(name).read());
  }
}

/// A directory with `change` done to its tensors.
fs::path changed(const fs::path& from, const fs::path& to,
                 const std::function<void(Original&)>& change) {
  Original tensors;
  const HfWeights weights = HfWeights::open(from);
  for (const auto& [name, tensor] : weights.tensors())
    tensors[name] = {tensor.entry->dtype, tensor.entry->shape, tensor.read()};
  change(tensors);
  fs::create_directories(to);
  fs::copy_file(from / "config.json", to / "config.json");
  write_original(to / "model.safetensors", tensors);
  return to;
}

bool noted(const Conversion& done, const std::string& part) {
  return std::ranges::any_of(
      done.notes, [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("convert: diffusers and text encoder directories there and back with equal bytes") {
  const TempDir dir;
  int number = 0;
  for (const char* name :
       {"dit", "dit/untied", "pixart", "sd3/sd3", "sd3/sd35", "vae", "text_encoders/clip",
        "text_encoders/clip_proj", "text_encoders/t5", "text_bert/bert", "text_bert/bert_bare"}) {
    CAPTURE(name);
    const fs::path in = kOracles / name;
    const fs::path own = dir / ("own" + std::to_string(number)),
                   out = dir / ("out" + std::to_string(number++));
    convert(resolve_target(in), own, {.to = kOwn});
    convert(resolve_target(own), out, {});
    check_equal(in, out);
    const bool diffusers = mm::read_json_file(in / "config.json").contains("_class_name");
    CHECK(fs::exists(out /
                     (diffusers ? "diffusion_pytorch_model.safetensors" : "model.safetensors")));
  }
}

TEST_CASE("convert: shards of a diffusers model have its name and an index") {
  const TempDir dir;
  const Conversion done =
      convert(resolve_target(kOracles / "vae"), dir / "out", {.max_shard_bytes = 400'000});
  CHECK(done.files == 3);
  CHECK(fs::exists(dir / "out/diffusion_pytorch_model-00002-of-00003.safetensors"));
  CHECK(fs::exists(dir / "out/diffusion_pytorch_model.safetensors.index.json"));
  check_equal(kOracles / "vae", dir / "out");
}

TEST_CASE("convert: DiT's repeated embedders are kept once while they are equal") {
  const TempDir dir;
  const Conversion tied = convert(resolve_target(kOracles / "dit"), dir / "tied", {.to = kOwn});
  CHECK(noted(tied, "10 copies of block 0's embedder dropped"));
  const Conversion own =
      convert(resolve_target(kOracles / "dit/untied"), dir / "untied", {.to = kOwn});
  CHECK(own.tensors == tied.tensors + 10);
  CHECK(noted(own, "differs from block 0's"));
  convert(resolve_target(dir / "untied"), dir / "out", {});
  CHECK(mm::read_json_file(dir / "out/config.json")["own_embedders"] == true);
}

TEST_CASE("convert: original DiT, PixArt and SD3 files become diffusers' to the byte") {
  const TempDir dir;
  struct Case {
    const char* folder;
    Original tensors;
  };
  const std::string inner = "model.diffusion_model.";
  for (const Case& c : {Case{"dit", original_dit(Taken(kOracles / "dit"), 3)},
                        Case{"pixart", original_pixart(Taken(kOracles / "pixart"), 3)},
                        Case{"sd3/sd3", original_sd3(Taken(kOracles / "sd3/sd3"), 2, inner)},
                        Case{"sd3/sd35", original_sd3(Taken(kOracles / "sd3/sd35"), 2, "")}}) {
    CAPTURE(c.folder);
    const std::string name = fs::path(c.folder).filename().string();
    const fs::path file = dir / (name + ".safetensors"),
                   config = kOracles / c.folder / "config.json";
    write_original(file, c.tensors);
    convert(resolve_target(file), dir / name, {.config = config});
    check_equal(kOracles / c.folder, dir / name);
    convert(resolve_target(file), dir / (name + "-own"), {.to = kOwn, .config = config});
    convert(resolve_target(dir / (name + "-own")), dir / (name + "-back"), {});
    check_equal(kOracles / c.folder, dir / (name + "-back"));
  }
  const mm::Json dit = mm::read_json_file(dir / "dit/config.json");
  CHECK(dit["time_embedding_divisor"] == 128);
  CHECK(dit["norm_eps"] == 1e-6);
}

TEST_CASE("convert: a time embedding that diffusers computes otherwise is told") {
  const TempDir dir;
  const auto written = [&](const char* folder, int divisor) {
    const fs::path in = dir / (std::string(folder) + std::to_string(divisor));
    fs::copy(kOracles / folder, in);
    mm::Json config = mm::read_json_file(in / "config.json");
    config["time_embedding_divisor"] = divisor;
    fs::remove(in / "config.json");
    mm::write_file_atomic(in / "config.json", config.dump());
    return convert(resolve_target(in), in / "out", {});
  };
  CHECK(noted(written("dit", 128), "its DiTTransformer2DModel divides by 127"));
  CHECK(!noted(written("dit", 127), "time_embedding_divisor"));
  CHECK(noted(written("pixart", 127), "its PixArtTransformer2DModel divides by 128"));
  CHECK(!noted(written("pixart", 128), "time_embedding_divisor"));
}

TEST_CASE("convert: what lies beside an original SD3 and a null caption of PixArt are settled") {
  const TempDir dir;
  Original sd3 = original_sd3(Taken(kOracles / "sd3/sd3"), 2, "model.diffusion_model.");
  sd3["first_stage_model.decoder.conv_in.bias"] = {DType::kF32, {1}, floats({1})};
  write_original(dir / "sd3.safetensors", sd3);
  const Conversion done = convert(resolve_target(dir / "sd3.safetensors"), dir / "sd3",
                                  {.config = kOracles / "sd3/sd3/config.json"});
  CHECK(noted(done, "1 tensors outside model.diffusion_model left out"));
  check_equal(kOracles / "sd3/sd3", dir / "sd3");
  Original pixart = original_pixart(Taken(kOracles / "pixart"), 3);
  pixart["y_embedder.y_embedding"] = {DType::kF32, {2, 48}, std::vector<std::byte>(2 * 48 * 4)};
  write_original(dir / "pixart.safetensors", pixart);
  convert(resolve_target(dir / "pixart.safetensors"), dir / "pixart",
          {.config = kOracles / "pixart/config.json"});
  CHECK(HfWeights::open(dir / "pixart").find("caption_projection.y_embedding") != nullptr);
  const mm::Json config = mm::read_json_file(dir / "pixart/config.json");
  CHECK(config["null_caption"] == true);
  CHECK(config["caption_tokens"] == 2);
}

TEST_CASE("convert: what an original file cannot be is refused by name") {
  const TempDir dir;
  const auto refused = [&](const Original& tensors, const std::string& part,
                           const fs::path& config = kOracles / "dit/config.json") {
    const fs::path file = dir / "x.safetensors";
    write_original(file, tensors);
    CHECK_THROWS_WITH_AS(convert(resolve_target(file), dir / "x", {.config = config}),
                         doctest::Contains(part.c_str()), mm::DataError);
    CHECK(!fs::exists(dir / "x"));
  };
  const Original dit = original_dit(Taken(kOracles / "dit"), 3);
  refused({{"w", {DType::kF32, {1}, floats({1})}}}, "does not say which model it is");
  refused(dit, "holds a DiTTransformer2DModel", kOracles / "pixart/config.json");
  refused(dit, "no published model has 48 channels", {});
  Original odd = dit;
  odd["blocks.0.attn.surprise"] = {DType::kF32, {1}, floats({1})};
  refused(odd, "blocks.0.attn.surprise is no tensor of an original DiT");
  odd = dit;
  odd["blocks.1.attn.qkv.bias"] = {DType::kF32, {2}, floats({1, 2})};
  refused(odd, "blocks.1.attn.qkv.bias has shape [2]");
  CHECK_THROWS_AS(convert(resolve_target(kOracles / "dit"), dir / "y",
                          {.config = kOracles / "dit/config.json"}),
                  mm::UsageError);
}

TEST_CASE("an original file's shapes imply the configuration that was published") {
  const auto shaped = [](const char* name, std::vector<uint64_t> shape) {
    return TensorSource{.name = name, .dtype = DType::kF32, .shape = std::move(shape)};
  };
  std::vector<TensorSource> tensors{
      shaped("pos_embed.proj.weight", {1152, 4, 2, 2}), shaped("proj_out_2.bias", {32}),
      shaped("transformer_blocks.0.ff.net.2.bias", {1152}),
      shaped("transformer_blocks.0.norm1.emb.class_embedder.embedding_table.weight", {1001, 1152}),
      shaped("transformer_blocks.1.ff.net.2.bias", {1152})};
  const mm::Json dit = implied_config(tensors, OriginalFamily::kDit, 16, "x");
  CHECK(dit["num_attention_heads"] == 16);
  CHECK(dit["attention_head_dim"] == 72);
  CHECK(dit["num_layers"] == 2);
  CHECK(dit["out_channels"] == 8);
  CHECK(dit["num_embeds_ada_norm"] == 1000);
  CHECK(dit["sample_size"] == 32);
  tensors = {shaped("context_embedder.weight", {1536, 4096}),
             shaped("pos_embed.pos_embed", {1, 36864, 1536}),
             shaped("pos_embed.proj.weight", {1536, 16, 2, 2}),
             shaped("proj_out.bias", {64}),
             shaped("time_text_embed.text_embedder.linear_1.weight", {1536, 2048}),
             shaped("transformer_blocks.0.attn.norm_q.weight", {64}),
             shaped("transformer_blocks.0.attn2.to_q.weight", {1536, 1536}),
             shaped("transformer_blocks.0.ff.net.2.bias", {1536})};
  const mm::Json sd3 = implied_config(tensors, OriginalFamily::kSd3, 0, "x");
  CHECK(sd3["num_attention_heads"] == 24);
  CHECK(sd3["pos_embed_max_size"] == 192);
  CHECK(sd3["pooled_projection_dim"] == 2048);
  CHECK(sd3["dual_attention_layers"] == mm::Json({0}));
  CHECK(sd3["qk_norm"] == "rms_norm");
}

TEST_CASE(
    "convert: a VAE's old attention names, also as 1x1 convolutions, become the present ones") {
  const TempDir dir;
  const fs::path old = changed(kOracles / "vae", dir / "old", [](Original& tensors) {
    Original out;
    for (auto& [name, held] : tensors) {
      std::string spelled = name;
      for (const auto& [now, then] : {std::pair{".to_q.", ".query."},
                                      {".to_k.", ".key."},
                                      {".to_v.", ".value."},
                                      {".to_out.0.", ".proj_attn."}}) {
        const size_t at = spelled.find(now);
        if (at == std::string::npos) continue;
        spelled.replace(at, std::string(now).size(), then);
        if (held.shape.size() == 2) held.shape.insert(held.shape.end(), {1, 1});
      }
      out[spelled] = std::move(held);
    }
    tensors = std::move(out);
  });
  convert(resolve_target(old), dir / "out", {});
  check_equal(kOracles / "vae", dir / "out");
}

TEST_CASE("C47: convert drops T5's equal second table, and refuses one that differs") {
  const TempDir dir;
  const auto with_copy = [&](const std::string& name, bool equal) {
    return changed(kOracles / "text_encoders/t5", dir / name, [&](Original& tensors) {
      tensors["encoder.embed_tokens.weight"] = tensors.at("shared.weight");
      if (!equal) tensors["encoder.embed_tokens.weight"].bytes[5] ^= std::byte{1};
    });
  };
  const Conversion done = convert(resolve_target(with_copy("in", true)), dir / "out", {});
  CHECK(noted(done, "encoder.embed_tokens.weight dropped"));
  check_equal(kOracles / "text_encoders/t5", dir / "out");
  CHECK_THROWS_WITH_AS(convert(resolve_target(with_copy("odd", false)), dir / "no", {}),
                       doctest::Contains("differ"), mm::DataError);
}
