// The golden adapter was written by the peft package (tools/oracles/gen_adapter.py).
#include "lib/ckpt/peft.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/ckpt/convert.h"
#include "lib/model/hf_load.h"
#include "lib/model/lora.h"
#include "tests/base/temp_dir.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using mm::test::TempDir;

namespace {

const std::filesystem::path kOracles = MM_TEST_DATA "/oracles";

at::Tensor read(const std::filesystem::path& file, const std::string& name) {
  const auto opened = mm::ckpt::SafetensorsFile::open(file);
  const auto found = std::ranges::find(opened.tensors(), name, &mm::ckpt::TensorEntry::name);
  REQUIRE(found != opened.tensors().end());
  return to_tensor(opened, *found);
}

/// The oracle's first sample: 37 tokens, one picture.
Batch first_sample(const LlavaConfig& config) {
  const auto io = kOracles / "llava" / "io.safetensors";
  const int64_t length = read(io, "attention_mask")[0].sum().item<int64_t>();
  Batch batch;
  batch.tokens = read(io, "input_ids")[0].narrow(0, 0, length).contiguous();
  batch.targets = at::full({length}, -100, at::kLong);
  batch.positions = at::arange(length, at::kLong);
  batch.cu_seqlens = {0, length};
  batch.image_token_index = batch.tokens.eq(config.image_token_index).nonzero().flatten();
  batch.pixel_values = read(io, "pixel_values").narrow(0, 0, 1).contiguous();
  batch.sizes.tokens = length;
  batch.want_logits = true;
  return batch;
}

at::Tensor last_logits(const Model& model, const LlavaConfig& config,
                       std::vector<at::Tensor> values) {
  const SimpleParams params(model, std::move(values),
                            std::vector<bool>(model.params.size(), false));
  const at::Tensor logits = eager_forward(model, params, first_sample(config))[model.logits_slot];
  return logits.narrow(0, logits.size(0) - 6, 6);
}

}  // namespace

TEST_CASE("peft's adapter, merged by mmckpt, gives the logits that peft's model gives") {
  const TempDir dir;
  const auto golden = kOracles / "llava_peft";
  mm::ckpt::convert(mm::ckpt::resolve_target(kOracles / "llava"), dir / "merged",
                    {.adapter = golden});
  LoadedLlava merged = load_llava(dir / "merged");
  const at::Tensor expected = read(golden / "io.safetensors", "logits");
  const ParamId q =
      find_param(merged.model, "language_model.model.layers.0.self_attn.q_proj.weight");
  CHECK(test::relative(merged.values[q], read(golden / "io.safetensors", "q_proj")) < 1e-6);
  CHECK(test::relative(last_logits(merged.model, merged.config, merged.values), expected) < 1e-5);
  const LoadedLlava base = load_llava(kOracles / "llava");
  CHECK(test::relative(last_logits(base.model, base.config, base.values), expected) > 0.1);
}

TEST_CASE("peft's adapter beside the frozen weights gives the same logits") {
  const auto golden = kOracles / "llava_peft";
  LoadedLlava base = load_llava(kOracles / "llava");
  const mm::ckpt::PeftAdapter adapter = mm::ckpt::open_peft(golden);
  add_lora(base.model, {.rank = adapter.rank,
                        .alpha = adapter.alpha,
                        .targets = {{Part::kLanguage, {"q_proj", "v_proj", "up_proj"}}}});
  REQUIRE(base.model.adapters.size() == 2 * 3);
  base.values.resize(base.model.params.size());
  size_t used = 0;
  for (size_t i = 0; i < base.values.size(); ++i) {
    const auto found = adapter.tensors.find(base.model.params[i].name);
    if (found == adapter.tensors.end()) continue;
    base.values[i] = to_tensor(*found->second.file, *found->second.entry);
    ++used;
  }
  CHECK(used == adapter.tensors.size());
  CHECK(test::relative(last_logits(base.model, base.config, base.values),
                       read(golden / "io.safetensors", "logits")) < 1e-5);
}
