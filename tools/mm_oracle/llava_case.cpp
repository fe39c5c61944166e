#include "tools/mm_oracle/llava_case.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/cross_entropy.h"
#include "tools/mm_oracle/picture_inputs.h"

namespace mm::oracle {
namespace {

struct Inputs {
  at::Tensor ids, mask, labels, pixels;
};

Inputs read_inputs(Folder& folder, const model::LlavaConfig& config) {
  Inputs in{folder.tensor("input_ids"), folder.tensor("attention_mask"), folder.tensor("labels"),
            folder.tensor("pixel_values")};
  const auto like_ids = [&](const at::Tensor& x) {
    return x.scalar_type() == at::kLong && x.sizes() == in.ids.sizes();
  };
  const int64_t dims = config.family == model::Family::kQwen25Vl ? 2 : 4;
  if (in.ids.dim() != 2 || !like_ids(in.ids) || !like_ids(in.mask) || !like_ids(in.labels) ||
      in.pixels.dim() != dims) {
    throw DataError(
        "{}: io.safetensors: input_ids, attention_mask and labels must be int64 of one shape "
        "[batch, token], pixel_values must have {} dimensions",
        folder.directory().string(), dims);
  }
  return in;
}

// Each row without its padding on the right; labels shifted by one inside the row.
void pack_rows(const Inputs& in, LlavaCase& c) {
  const int64_t width = in.ids.size(1);
  std::vector<at::Tensor> tokens, targets, positions, kept;
  c.batch.cu_seqlens = {0};
  for (int64_t b = 0; b < in.ids.size(0); ++b) {
    const auto n = in.mask[b].sum().item<int64_t>();
    const at::Tensor next = at::full({n}, model::kNoTarget, at::kLong);
    if (n > 1) next.narrow(0, 0, n - 1).copy_(in.labels[b].narrow(0, 1, n - 1));
    tokens.push_back(in.ids[b].narrow(0, 0, n));
    targets.push_back(next);
    positions.push_back(at::arange(n, at::kLong));
    kept.push_back(at::arange(n, at::kLong) + b * width);
    c.batch.cu_seqlens.push_back(c.batch.cu_seqlens.back() + n);
    c.batch.sizes.attention_pairs += static_cast<double>(n) * static_cast<double>(n + 1) / 2;
  }
  c.batch.tokens = at::cat(tokens);
  c.batch.targets = at::cat(targets);
  c.batch.positions = at::cat(positions);
  c.kept_rows = at::cat(kept);
}

}  // namespace

model::SimpleParams LlavaCase::params(const std::vector<bool>& trainable) const {
  std::vector<at::Tensor> values;
  for (const at::Tensor& value : loaded.values) values.push_back(value.to(dtype).clone());
  return model::SimpleParams(loaded.model, std::move(values), trainable);
}

LlavaCase read_llava_case(Folder& folder, at::ScalarType dtype) {
  LlavaCase c{.loaded = model::load_llava(folder.directory()), .dtype = dtype};
  const Inputs in = read_inputs(folder, c.loaded.config);
  pack_rows(in, c);
  c.batch.image_token_index =
      c.batch.tokens.eq(c.loaded.config.image_token_index).nonzero().flatten();
  c.targets = static_cast<double>(c.batch.targets.ne(model::kNoTarget).sum().item<int64_t>());
  c.batch.want_logits = true;
  model::Sizes& sizes = c.batch.sizes;
  sizes.tokens = c.batch.tokens.size(0);
  sizes.samples = in.ids.size(0);
  sizes.patches = c.loaded.config.patches_per_image();
  sizes.targets = static_cast<int64_t>(c.targets);
  set_pictures(read_pictures(folder, c.loaded.config), in.pixels.to(dtype), c.loaded.config,
               c.batch);
  int64_t wanted = sizes.images * sizes.patches;
  if (c.loaded.config.varied_pictures()) wanted = 0;
  for (const model::PictureShape& picture : c.batch.pictures) wanted += picture.tokens;
  if (c.batch.image_token_index.size(0) != wanted) {
    throw DataError("{}: {} picture tokens, the pictures have {}", folder.directory().string(),
                    c.batch.image_token_index.size(0), wanted);
  }
  return c;
}

}  // namespace mm::oracle
