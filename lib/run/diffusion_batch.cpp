#include "lib/run/diffusion_batch.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/objective_draw.h"

namespace mm::run {
namespace {

/// Noise, time and whether the condition is left out, of each picture.
void draw(const data::MicroBatch& mb, const DiffusionBatchInputs& in, model::DiffusionInput& out) {
  const auto pictures = static_cast<int64_t>(mb.sample_ids.size());
  out.noise = at::empty_like(out.clean);
  out.times = at::empty({pictures}, at::kDouble);
  out.sigmas = at::empty({pictures}, at::kDouble);
  out.caption_dropped = at::zeros({pictures}, at::kBool);
  for (int64_t i = 0; i < pictures; ++i) {
    const uint64_t sample = mb.sample_ids[static_cast<size_t>(i)];
    const auto stream = [&](const char* purpose) {
      return model::sample_stream(in.draws.seed, purpose, in.draws.epoch, sample);
    };
    model::fill_normal(out.noise[i], stream("noise"));
    const model::DrawnTime time = model::draw_time(in.objective, stream("time"));
    out.times.mutable_data_ptr<double>()[i] = time.time;
    out.sigmas.mutable_data_ptr<double>()[i] = time.sigma;
    out.caption_dropped.mutable_data_ptr<bool>()[i] =
        model::draws_drop(stream("caption_drop"), in.draws.label_drop);
  }
  out.times = out.times.to(in.dtype);
  out.sigmas = out.sigmas.to(in.dtype);
}

/// The class of each picture, its caption's one id; `classes` where it is dropped or a filler.
at::Tensor labels_of(const data::MicroBatch& mb, const at::Tensor& dropped, int64_t classes) {
  at::Tensor labels = at::full({dropped.size(0)}, classes, at::kLong);
  for (int64_t i = 0; i < labels.size(0); ++i) {
    const auto row = static_cast<size_t>(i);
    const bool has = mb.cu_seqlens[row + 1] > mb.cu_seqlens[row];
    if (has && !dropped.const_data_ptr<bool>()[i])
      labels.mutable_data_ptr<int64_t>()[i] = mb.tokens[static_cast<size_t>(mb.cu_seqlens[row])];
  }
  return labels;
}

/// Latents of each picture, drawn from what its encoder gave; of fillers zeros.
at::Tensor stored_latents(const data::MicroBatch& mb, const DiffusionBatchInputs& in) {
  const EncodedSettings& settings = in.encoded->settings();
  const int64_t height = mb.height / settings.factor, width = mb.width / settings.factor;
  at::Tensor clean = at::zeros(
      {static_cast<int64_t>(mb.sample_ids.size()), settings.channels, height, width}, in.dtype);
  for (size_t i = 0; i < mb.sample_ids.size(); ++i) {
    const uint64_t sample = mb.sample_ids[i];
    if (sample == data::kFillerId) continue;
    at::Tensor noise = at::empty({settings.channels, height, width}, at::kFloat);
    model::fill_normal(noise,
                       model::sample_stream(in.draws.seed, "latent_noise", in.draws.epoch, sample));
    clean[static_cast<int64_t>(i)].copy_(in.encoded->latents(sample, noise));
  }
  return clean;
}

/// Stored embeddings padded with zeros to the longest, cut at what the model takes.
void set_stored_text(const data::MicroBatch& mb, const DiffusionBatchInputs& in,
                     model::DiffusionInput& out) {
  const EncodedSettings& settings = in.encoded->settings();
  const auto pictures = static_cast<int64_t>(mb.sample_ids.size());
  std::vector<at::Tensor> captions(mb.sample_ids.size());
  // Without a mask the padded length is a part of the result: the same in every micro-batch.
  int64_t longest = in.config.mask_captions ? 1 : in.config.caption_tokens;
  out.pooled = at::zeros({pictures, settings.pooled_width}, in.dtype);
  for (size_t i = 0; i < captions.size(); ++i) {
    const uint64_t sample = mb.sample_ids[i];
    if (sample == data::kFillerId) continue;
    captions[i] = in.encoded->caption(sample);
    captions[i] = captions[i].narrow(0, 0, std::min(captions[i].size(0), in.config.caption_tokens));
    longest = std::max(longest, captions[i].size(0));
    out.pooled[static_cast<int64_t>(i)].copy_(in.encoded->pooled(sample));
  }
  out.captions = at::zeros({pictures, longest, settings.text_width}, in.dtype);
  out.caption_mask = at::zeros({pictures, longest}, at::kBool);
  for (size_t i = 0; i < captions.size(); ++i) {
    if (!captions[i].defined()) continue;
    const auto row = static_cast<int64_t>(i);
    out.captions[row].narrow(0, 0, captions[i].size(0)).copy_(captions[i]);
    out.caption_mask[row].narrow(0, 0, captions[i].size(0)).fill_(true);
  }
}

void set_shapes(const data::MicroBatch& mb, at::ScalarType dtype, model::DiffusionInput& out) {
  const auto pictures = static_cast<int64_t>(mb.sample_ids.size());
  const auto sides = at::TensorOptions(at::kDouble);
  out.resolutions = at::empty({pictures, 2}, sides);
  for (int64_t i = 0; i < pictures; ++i) {
    out.resolutions[i][0] = mb.height;
    out.resolutions[i][1] = mb.width;
  }
  out.aspect_ratios = (out.resolutions.narrow(1, 0, 1) / out.resolutions.narrow(1, 1, 1)).to(dtype);
  out.resolutions = out.resolutions.to(dtype);
}

at::Tensor weights_of(const data::MicroBatch& mb, at::ScalarType dtype) {
  if (mb.weights.empty()) return {};
  at::Tensor weights = at::empty({static_cast<int64_t>(mb.weights.size())}, at::kFloat);
  std::copy(mb.weights.begin(), mb.weights.end(), weights.mutable_data_ptr<float>());
  return weights.to(dtype);
}

}  // namespace

model::Sizes diffusion_sizes(const model::DiffusionConfig& config, int64_t pictures, int64_t height,
                             int64_t width, int64_t caption_tokens) {
  const int64_t patches = (height / config.patch) * (width / config.patch);
  return {.tokens = caption_tokens,
          .samples = pictures,
          .images = pictures,
          .patches = patches,
          .targets = pictures,
          .patch_rows = pictures * patches,
          .picture_pairs = static_cast<double>(pictures) * static_cast<double>(patches * patches)};
}

model::Batch to_diffusion_batch(const data::MicroBatch& mb, const DiffusionBatchInputs& in) {
  MM_CHECK(mb.sample_ids.size() == static_cast<size_t>(mb.images), "{} samples of {} pictures",
           mb.sample_ids.size(), mb.images);
  model::Batch batch;
  batch.tokens = ids_tensor(mb.tokens);
  batch.cu_seqlens.assign(mb.cu_seqlens.begin(), mb.cu_seqlens.end());
  if (batch.cu_seqlens.empty()) batch.cu_seqlens = {0};
  const bool latents = in.encoded != nullptr && in.encoded->settings().channels > 0;
  const bool embedded = in.encoded != nullptr && in.encoded->settings().text_width > 0;
  auto input = std::make_shared<model::DiffusionInput>();
  input->clean = latents ? stored_latents(mb, in) : same_sized_pixels(mb, in.dtype, in.norm);
  batch.sizes = diffusion_sizes(in.config, mb.images, input->clean.size(2), input->clean.size(3),
                                static_cast<int64_t>(mb.tokens.size()));
  batch.sizes.targets = mb.target_count;
  if (embedded) set_stored_text(mb, in, *input);
  draw(mb, in, *input);
  if (!in.config.takes_captions())
    input->labels = labels_of(mb, input->caption_dropped, in.config.classes);
  set_shapes(mb, in.dtype, *input);
  input->weights = weights_of(mb, in.dtype);
  batch.diffusion = std::move(input);
  return batch;
}

}  // namespace mm::run
