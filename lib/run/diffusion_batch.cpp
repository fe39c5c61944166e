#include "lib/run/diffusion_batch.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

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
  model::Objective objective = in.objective;
  const int64_t patch = in.config.patch;
  objective.shift *=
      objective.shift_factor((out.clean.size(2) / patch) * (out.clean.size(3) / patch));
  for (int64_t i = 0; i < pictures; ++i) {
    const uint64_t sample = mb.sample_ids[static_cast<size_t>(i)];
    const auto stream = [&](const char* purpose) {
      return model::sample_stream(in.draws.seed, purpose, in.draws.epoch, sample);
    };
    model::fill_normal(out.noise[i], stream("noise"));
    const model::DrawnTime time = model::draw_time(objective, stream("time"));
    out.times.mutable_data_ptr<double>()[i] = time.time;
    out.sigmas.mutable_data_ptr<double>()[i] = time.sigma;
    out.caption_dropped.mutable_data_ptr<bool>()[i] =
        model::draws_drop(stream("caption_drop"), in.draws.label_drop);
  }
  out.times = out.times.to(in.dtype);
  out.sigmas = out.sigmas.to(in.dtype);
}

/// Zeros in the place of what an encoder gave of caption `i`. A caption that was cut has fewer
/// rows.
void leave_out(const CaptionShare& share, int64_t i, model::DiffusionInput& out) {
  const int64_t length = out.captions.size(1), begin = std::min(share.row, length);
  const int64_t end = share.rows > 0 ? std::min(share.row + share.rows, length) : length;
  out.captions[i].narrow(0, begin, end - begin).narrow(1, share.column, share.width).zero_();
  out.pooled[i].narrow(0, share.pooled, share.pooled_width).zero_();
}

/// Text encoders' shares left out by themselves, as SD3 was trained (Esser et al. 2024): without an
/// encoder at drawing, T5 for example, zeros stand in its place too.
void drop_shares(const data::MicroBatch& mb, const DiffusionBatchInputs& in,
                 model::DiffusionInput& out) {
  const std::vector<EncoderDrop>& encoders = in.draws.encoder_drop;
  if (encoders.empty() || !out.captions.defined()) return;
  for (size_t i = 0; i < mb.sample_ids.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    size_t left_out = 0;
    for (size_t k = 0; k < encoders.size(); ++k) {
      const std::string purpose = fmt::format("encoder_drop.{}", k);
      const bool drops = model::draws_drop(
          model::sample_stream(in.draws.seed, purpose, in.draws.epoch, mb.sample_ids[i]),
          encoders[k].chance);
      if (!drops) continue;
      leave_out(encoders[k].share, row, out);
      ++left_out;
    }
    if (left_out == encoders.size()) out.caption_dropped.mutable_data_ptr<bool>()[row] = true;
  }
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

/// Draws the latents of sample `i` from what its encoder gave; of fillers there are none.
at::Tensor latent_noise(const data::MicroBatch& mb, size_t i, const DiffusionBatchInputs& in,
                        const std::vector<int64_t>& shape) {
  at::Tensor noise = at::empty(shape, at::kFloat);
  model::fill_normal(
      noise, model::sample_stream(in.draws.seed, "latent_noise", in.draws.epoch, mb.sample_ids[i]));
  return noise;
}

/// Not of fillers, and not of rows that could not be read when they were to be encoded.
bool is_stored(const EncodedSet& encoded, uint64_t sample) {
  return sample != data::kFillerId && encoded.has(sample);
}

at::Tensor stored_latents(const data::MicroBatch& mb, const DiffusionBatchInputs& in) {
  const EncodedSettings& settings = in.encoded->settings();
  const int64_t height = mb.height / settings.factor, width = mb.width / settings.factor;
  at::Tensor clean = at::zeros(
      {static_cast<int64_t>(mb.sample_ids.size()), settings.channels, height, width}, in.dtype);
  for (size_t i = 0; i < mb.sample_ids.size(); ++i) {
    if (!is_stored(*in.encoded, mb.sample_ids[i])) continue;
    const at::Tensor noise = latent_noise(mb, i, in, {settings.channels, height, width});
    clean[static_cast<int64_t>(i)].copy_(in.encoded->latents(mb.sample_ids[i], noise));
  }
  return clean;
}

/// The same by the VAE itself; it does not see fillers.
at::Tensor encoded_latents(const data::MicroBatch& mb, const DiffusionBatchInputs& in) {
  const model::VaeConfig& vae = in.online->vae->config();
  const PixelNorm to_unit{.mean = {0.5F, 0.5F, 0.5F}, .std = {0.5F, 0.5F, 0.5F}};
  std::vector<int64_t> real;
  for (size_t i = 0; i < mb.sample_ids.size(); ++i) {
    if (mb.sample_ids[i] != data::kFillerId) real.push_back(static_cast<int64_t>(i));
  }
  const at::Tensor pixels = same_sized_pixels(mb, at::kFloat, to_unit);
  const at::Tensor both = mean_and_deviation(
      *in.online->vae, pixels.index_select(0, at::tensor(real, at::kLong)), in.pictures_at_once);
  const int64_t channels = vae.latent_channels, height = both.size(2), width = both.size(3);
  at::Tensor clean = at::zeros({mb.images, channels, height, width}, in.dtype);
  for (size_t k = 0; k < real.size(); ++k) {
    const auto i = static_cast<size_t>(real[k]);
    const at::Tensor one = both[static_cast<int64_t>(k)];
    const at::Tensor noise = latent_noise(mb, i, in, {channels, height, width});
    clean[real[k]].copy_(model::scaled_latents(
        vae, one.narrow(0, 0, channels) + one.narrow(0, channels, channels) * noise));
  }
  return clean;
}

CaptionStates stored_states(const data::MicroBatch& mb, const EncodedSet& encoded) {
  CaptionStates states{.width = encoded.settings().text_width,
                       .pooled_width = encoded.settings().pooled_width};
  for (const uint64_t sample : mb.sample_ids) {
    const bool real = is_stored(encoded, sample);
    states.hidden.push_back(real ? encoded.caption(sample) : at::Tensor());
    states.pooled.push_back(real ? encoded.pooled(sample) : at::Tensor());
  }
  return states;
}

/// The same by text encoders, `at_once` captions at a time (0: all).
CaptionStates encoded_states(const data::MicroBatch& mb, const CaptionEncoders& encoders,
                             int64_t at_once) {
  std::vector<std::vector<int32_t>> captions;
  std::vector<size_t> real;
  for (size_t i = 0; i < mb.sample_ids.size(); ++i) {
    if (mb.sample_ids[i] == data::kFillerId) continue;
    real.push_back(i);
    captions.emplace_back(mb.tokens.begin() + mb.cu_seqlens[i],
                          mb.tokens.begin() + mb.cu_seqlens[i + 1]);
  }
  CaptionStates states{.hidden = std::vector<at::Tensor>(mb.sample_ids.size()),
                       .pooled = std::vector<at::Tensor>(mb.sample_ids.size()),
                       .width = encoders.shape().width,
                       .pooled_width = encoders.shape().pooled_width};
  const size_t step = at_once > 0 ? static_cast<size_t>(at_once) : real.size();
  for (size_t first = 0; first < real.size(); first += step) {
    const size_t count = std::min(step, real.size() - first);
    const auto begin = captions.begin() + static_cast<ptrdiff_t>(first);
    const CaptionEncoders::States made =
        encoders.encode({begin, begin + static_cast<ptrdiff_t>(count)});
    for (size_t k = 0; k < count; ++k) {
      states.hidden[real[first + k]] = made.hidden[k];
      states.pooled[real[first + k]] = made.pooled[static_cast<int64_t>(k)];
    }
  }
  return states;
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

void set_captions(const CaptionStates& states, const model::DiffusionConfig& config,
                  at::ScalarType dtype, model::DiffusionInput& out) {
  const std::vector<at::Tensor>& hidden = states.hidden;
  const auto rows_of = [&](const at::Tensor& caption) {
    return std::min(caption.size(0), config.caption_tokens);
  };
  // Without a mask the padded length is a part of the result: the same in every micro-batch.
  int64_t longest = config.mask_captions ? 1 : config.caption_tokens;
  for (const at::Tensor& caption : hidden)
    if (caption.defined()) longest = std::max(longest, rows_of(caption));
  const int64_t pictures = std::ssize(hidden);
  out.captions = at::zeros({pictures, longest, states.width}, dtype);
  out.caption_mask = at::zeros({pictures, longest}, at::kBool);
  out.pooled = at::zeros({pictures, states.pooled_width}, dtype);
  for (int64_t i = 0; i < pictures; ++i) {
    const at::Tensor& caption = hidden[static_cast<size_t>(i)];
    if (!caption.defined()) continue;
    const int64_t rows = rows_of(caption);
    out.captions[i].narrow(0, 0, rows).copy_(caption.narrow(0, 0, rows));
    out.caption_mask[i].narrow(0, 0, rows).fill_(true);
    out.pooled[i].copy_(states.pooled[static_cast<size_t>(i)]);
  }
}

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
  auto input = std::make_shared<model::DiffusionInput>();
  if (has_latents(in.encoded))
    input->clean = stored_latents(mb, in);
  else if (in.online != nullptr && in.online->vae)
    input->clean = encoded_latents(mb, in);
  else
    input->clean = same_sized_pixels(mb, in.dtype, in.norm);
  batch.sizes = diffusion_sizes(in.config, mb.images, input->clean.size(2), input->clean.size(3),
                                static_cast<int64_t>(mb.tokens.size()));
  batch.sizes.targets = mb.target_count;
  if (has_text(in.encoded))
    set_captions(stored_states(mb, *in.encoded), in.config, in.dtype, *input);
  else if (in.online != nullptr && in.online->text)
    set_captions(encoded_states(mb, *in.online->text, in.captions_at_once), in.config, in.dtype,
                 *input);
  draw(mb, in, *input);
  drop_shares(mb, in, *input);
  if (!in.config.takes_captions())
    input->labels = labels_of(mb, input->caption_dropped, in.config.classes);
  set_shapes(mb, in.dtype, *input);
  input->weights = weights_of(mb, in.dtype);
  batch.diffusion = std::move(input);
  return batch;
}

}  // namespace mm::run
