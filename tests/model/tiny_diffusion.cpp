#include "tests/model/tiny_diffusion.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/model/objective_draw.h"

namespace mm::model::test {
namespace {

constexpr int64_t kCaptionTokens = 5;

at::Tensor drawn(const char* purpose, int64_t id, std::vector<int64_t> shape) {
  at::Tensor out = at::empty(shape, at::kDouble);
  fill_normal(out, sample_stream(1, purpose, 0, static_cast<uint64_t>(id)));
  return out;
}

int64_t caption_length(int64_t id) { return id % 4 == 3 ? 0 : 1 + (id * 2) % kCaptionTokens; }

void add_captions(const DiffusionConfig& c, const TinyPictures& p, DiffusionInput& in) {
  const auto n = static_cast<int64_t>(p.ids.size());
  int64_t longest = 1;
  for (int64_t id : p.ids) longest = std::max(longest, caption_length(id));
  const int64_t length = longest + p.caption_padding;
  in.captions =
      at::full({n, length, c.caption_width}, 1e3 + static_cast<double>(length), at::kDouble);
  in.caption_mask = at::zeros({n, length}, at::kBool);
  in.caption_dropped = at::zeros({n}, at::kBool);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = p.ids[i], rows = caption_length(id);
    in.captions[i].narrow(0, 0, rows).copy_(drawn("caption", id, {rows, c.caption_width}));
    in.caption_mask[i].narrow(0, 0, rows).fill_(true);
    in.caption_dropped[i].fill_(id % 5 == 4);
  }
}

void add_tokens(const DiffusionConfig& c, const TinyPictures& p, Batch& batch) {
  std::vector<int64_t> tokens;
  batch.cu_seqlens = {0};
  for (int64_t id : p.ids) {
    for (int64_t j = 0; j < caption_length(id); ++j)
      tokens.push_back((id * 7 + j * 3) % c.text.vocab);
    batch.cu_seqlens.push_back(static_cast<int64_t>(tokens.size()));
  }
  batch.tokens = at::tensor(tokens, at::TensorOptions().dtype(at::kLong));
}

void set_sizes(const DiffusionConfig& c, const TinyPictures& p, Batch& batch) {
  const auto n = static_cast<int64_t>(p.ids.size());
  const int64_t patches = p.height * p.width / (c.patch * c.patch);
  Sizes& sizes = batch.sizes;
  sizes.samples = sizes.images = sizes.targets = n;
  sizes.patches = patches;
  sizes.patch_rows = n * patches;
  sizes.picture_pairs = static_cast<double>(n * patches * patches);
  for (int64_t id : p.ids) sizes.tokens += caption_length(id);
}

}  // namespace

DiffusionConfig tiny_dit() {
  DiffusionConfig c;
  c.heads = 2;
  c.head_size = 12;
  c.layers = 2;
  c.sample_size = 8;
  c.classes = 6;
  return c;
}

DiffusionConfig tiny_pixart() {
  DiffusionConfig c = tiny_dit();
  c.family = DiffusionFamily::kPixart;
  c.caption_width = 10;
  c.caption_tokens = kCaptionTokens;
  c.size_embedders = true;
  c.null_caption = true;
  return c;
}

DiffusionConfig tiny_texted() {
  DiffusionConfig c = tiny_pixart();
  c.size_embedders = c.null_caption = false;
  c.text = {.vocab = 20, .hidden = 12, .layers = 2, .heads = 3};
  return c;
}

DiffusionConfig tiny_sd3() {
  DiffusionConfig c = tiny_dit();
  c.family = DiffusionFamily::kSd3;
  c.head_size = 16;
  c.learned_sigma = false;
  c.caption_width = 10;
  c.pooled_width = 7;
  c.caption_tokens = 40;
  c.mask_captions = false;
  c.position_table = 5;
  c.qk_norm = true;
  c.dual_layers = {0};
  return c;
}

std::vector<DiffusionConfig> tiny_families() {
  return {tiny_dit(), tiny_pixart(), tiny_texted(), tiny_sd3()};
}

Objective tiny_objective(const DiffusionConfig& config) {
  if (config.family == DiffusionFamily::kSd3)
    return {.prediction = Prediction::kVelocity, .shift = 3};
  return {.variational_bound = true};
}

Batch tiny_pictures(const DiffusionConfig& c, const TinyPictures& p, at::ScalarType dtype) {
  Batch batch;
  set_sizes(c, p, batch);
  if (c.text.vocab > 0) add_tokens(c, p, batch);
  if (p.null) return batch;
  const auto n = static_cast<int64_t>(p.ids.size());
  auto in = std::make_shared<DiffusionInput>();
  const std::vector<int64_t> shape{n, c.in_channels, p.height, p.width};
  in->clean = at::empty(shape, at::kDouble);
  in->noise = at::empty(shape, at::kDouble);
  in->times = at::empty({n}, at::kDouble);
  in->sigmas = at::empty({n}, at::kDouble);
  in->labels = at::empty({n}, at::kLong);
  in->pooled = at::empty({n, c.pooled_width}, at::kDouble);
  const Objective objective = tiny_objective(c);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = p.ids[i];
    const DrawnTime time =
        draw_time(objective, sample_stream(1, "time", 0, static_cast<uint64_t>(id)));
    in->clean[i].copy_(drawn("clean", id, {c.in_channels, p.height, p.width}) * 0.5);
    in->noise[i].copy_(drawn("noise", id, {c.in_channels, p.height, p.width}));
    in->times[i].fill_(time.time);
    in->sigmas[i].fill_(time.sigma);
    in->labels[i].fill_(id % (c.classes + 1));
    in->pooled[i].copy_(drawn("pooled", id, {c.pooled_width}));
  }
  in->resolutions = at::full({n, 2}, 256.0, at::kDouble);
  in->aspect_ratios =
      at::full({n, 1}, static_cast<double>(p.height) / static_cast<double>(p.width));
  if (c.takes_captions() && c.text.vocab == 0) add_captions(c, p, *in);
  for (at::Tensor DiffusionInput::*field :
       {&DiffusionInput::clean, &DiffusionInput::noise, &DiffusionInput::times,
        &DiffusionInput::sigmas, &DiffusionInput::pooled, &DiffusionInput::captions,
        &DiffusionInput::aspect_ratios, &DiffusionInput::resolutions}) {
    if (((*in).*field).defined()) (*in).*field = ((*in).*field).to(dtype);
  }
  batch.diffusion = in;
  return batch;
}

}  // namespace mm::model::test
