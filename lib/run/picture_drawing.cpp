#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/diffusion_sampler.h"
#include "lib/model/objective_draw.h"
#include "lib/run/diffusion_batch.h"
#include "lib/run/picture_bytes.h"
#include "lib/run/trained_diffusion.h"

namespace mm::run {
namespace {

/// In the words of --sampler and [sample].
void check_sampler(const TrainedDiffusion& trained, const model::SamplerOptions& sampler) {
  const model::Objective& objective = trained.objective;
  if (objective.is_flow() != (sampler.kind == model::SamplerKind::kFlowEuler))
    throw UsageError("--sampler: {} was trained with diffusion.predict = \"{}\"; expected {}",
                     trained.run.string(), trained.recipe.diffusion.predict,
                     objective.is_flow() ? "euler" : "ddim or dpm");
  if (!objective.is_flow() && sampler.steps > objective.steps)
    throw UsageError("--steps {}: {} was trained with diffusion.time_steps = {}; expected 1 to {}",
                     sampler.steps, trained.run.string(), objective.steps, objective.steps);
}

void check_drawing(const TrainedDiffusion& trained, const std::vector<Condition>& conditions,
                   const DrawOptions& options) {
  const bool vae = trained.encoders && trained.encoders->vae;
  const bool text = trained.encoders && trained.encoders->text;
  if (trained.draws_latents() != vae || trained.reads_embeddings() != text)
    throw UsageError("{}: draws latents or reads embeddings; drawing needs the models they are of",
                     trained.run.string());
  check_picture_size(trained.config, trained.factor(), options.size, "--size");
  check_sampler(trained, options.sampler);
  for (const Condition& condition : conditions) {
    if (condition.label >= trained.config.classes)
      throw UsageError("--label {}: the model knows classes 0 to {}", condition.label,
                       trained.config.classes - 1);
    if (condition.label >= 0 && trained.config.takes_captions())
      throw UsageError("--label: {} draws by caption; give --prompt", trained.run.string());
  }
}

/// Embeddings of the conditions' captions; none for a condition without.
CaptionStates states_of(const CaptionEncoders& encoders, std::span<const Condition> conditions) {
  CaptionStates states{.hidden = std::vector<at::Tensor>(conditions.size()),
                       .pooled = std::vector<at::Tensor>(conditions.size()),
                       .width = encoders.shape().width,
                       .pooled_width = encoders.shape().pooled_width};
  for (size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i].caption.empty()) continue;
    const CaptionEncoders::States one = encoders.encode({conditions[i].caption});
    states.hidden[i] = one.hidden[0];
    states.pooled[i] = one.pooled[0];
  }
  return states;
}

/// Conditions as the micro-batch that the model is asked about.
model::Batch condition_batch(const TrainedDiffusion& trained, std::span<const Condition> conditions,
                             const DrawOptions& options) {
  data::MicroBatch mb;
  mb.cu_seqlens = {0};
  const auto count = static_cast<int64_t>(conditions.size());
  auto input = std::make_shared<model::DiffusionInput>();
  input->labels = at::full({count}, trained.config.classes, at::kLong);
  input->caption_dropped = at::zeros({count}, at::kBool);
  for (int64_t i = 0; i < count; ++i) {
    const Condition& condition = conditions[static_cast<size_t>(i)];
    mb.tokens.insert(mb.tokens.end(), condition.caption.begin(), condition.caption.end());
    mb.cu_seqlens.push_back(static_cast<int32_t>(mb.tokens.size()));
    if (condition.label >= 0) input->labels[i] = condition.label;
    if (condition.caption.empty()) input->caption_dropped[i] = true;
  }
  const double height = options.size.height, width = options.size.width;
  input->resolutions = at::tensor({height, width}, at::kFloat).expand({count, 2}).contiguous();
  input->aspect_ratios = at::full({count, 1}, height / width, at::kFloat);
  model::Batch batch;
  batch.tokens = ids_tensor(mb.tokens);
  batch.cu_seqlens.assign(mb.cu_seqlens.begin(), mb.cu_seqlens.end());
  const int64_t factor = trained.factor();
  batch.sizes = diffusion_sizes(trained.config, count, options.size.height / factor,
                                options.size.width / factor, std::ssize(mb.tokens));
  if (trained.reads_embeddings())
    set_captions(states_of(*trained.encoders->text, conditions), trained.config, at::kFloat,
                 *input);
  batch.diffusion = std::move(input);
  return batch;
}

/// Pictures of what the model drew: latents decoded one by one, since a decoder takes much memory.
std::vector<image::Image> to_images(const TrainedDiffusion& trained, const at::Tensor& drawn) {
  const at::NoGradGuard no_grad;
  const PixelNorm unit{.mean = {0.5F, 0.5F, 0.5F}, .std = {0.5F, 0.5F, 0.5F}};
  std::vector<image::Image> pictures;
  for (int64_t i = 0; i < drawn.size(0); ++i) {
    if (trained.draws_latents())
      pictures.push_back(to_image(trained.encoders->vae->decode(drawn.narrow(0, i, 1))[0], unit));
    else
      pictures.push_back(to_image(drawn[i], trained.norm));
  }
  return pictures;
}

}  // namespace

void check_picture_size(const model::DiffusionConfig& config, int64_t factor,
                        data::BucketShape size, const std::string& key) {
  const int64_t patch = config.patch * factor;
  if (size.empty() || size.height % patch != 0 || size.width % patch != 0)
    throw UsageError("{} {}x{}: sides are multiples of the model's patch, {} pixels", key,
                     size.width, size.height, patch);
  const int64_t most = patch * config.position_table;
  if (config.family == model::DiffusionFamily::kSd3 && std::max(size.width, size.height) > most)
    throw UsageError("{} {}x{}: the model has positions for sides of up to {} pixels", key,
                     size.width, size.height, most);
}

void set_sampler(DrawOptions& options, const std::string& word, int64_t steps) {
  using Kind = model::SamplerKind;
  if (word == "ddim") options.sampler.kind = Kind::kDdim;
  if (word == "dpm") options.sampler.kind = Kind::kDpmSolver;
  if (word == "euler") options.sampler.kind = Kind::kFlowEuler;
  options.sampler.steps = options.sampler.kind == Kind::kDpmSolver ? 25 : 50;
  if (steps > 0) options.sampler.steps = steps;
}

DrawOptions usual_drawing(const TrainedDiffusion& trained) {
  DrawOptions options;
  options.sampler.kind =
      trained.objective.is_flow() ? model::SamplerKind::kFlowEuler : model::SamplerKind::kDdim;
  options.sampler.shift = trained.objective.shift;
  options.size = trained.usual_size();
  return options;
}

std::vector<image::Image> draw_pictures(const TrainedDiffusion& trained,
                                        const model::ParamView& params,
                                        const std::vector<Condition>& conditions,
                                        const DrawOptions& options) {
  check_drawing(trained, conditions, options);
  const model::Process process(trained.objective);
  const int64_t factor = trained.factor(), patch = trained.config.patch * factor;
  model::SamplerOptions sampler = options.sampler;
  sampler.shift *=
      trained.objective.shift_factor((options.size.height / patch) * (options.size.width / patch));
  std::vector<image::Image> pictures;
  for (size_t first = 0; first < conditions.size(); first += static_cast<size_t>(options.batch)) {
    const std::span<const Condition> some =
        std::span(conditions)
            .subspan(first,
                     std::min(static_cast<size_t>(options.batch), conditions.size() - first));
    const auto count = static_cast<int64_t>(some.size());
    at::Tensor noise = at::empty({count, trained.config.in_channels, options.size.height / factor,
                                  options.size.width / factor},
                                 at::kFloat);
    for (int64_t i = 0; i < count; ++i)
      model::fill_normal(noise[i],
                         model::sample_stream(options.seed, "sample", 0,
                                              options.first + first + static_cast<uint64_t>(i)));
    const model::Predictor predict =
        model::model_predictor({*trained.model, trained.config, trained.objective, params,
                                condition_batch(trained, some, options)},
                               options.guidance);
    const at::Tensor drawn = model::sample(process, sampler, noise, predict);
    for (image::Image& picture : to_images(trained, drawn)) pictures.push_back(std::move(picture));
  }
  return pictures;
}

image::Image picture_grid(const std::vector<image::Image>& pictures, int64_t columns, int64_t gap) {
  MM_CHECK(!pictures.empty() && columns > 0, "{} pictures in {} columns", pictures.size(), columns);
  const int64_t count = std::ssize(pictures), across = std::min(columns, count);
  const int64_t down = (count + across - 1) / across;
  const int64_t height = pictures[0].height, width = pictures[0].width;
  image::Image grid;
  grid.width = static_cast<int32_t>(across * (width + gap) + gap);
  grid.height = static_cast<int32_t>(down * (height + gap) + gap);
  grid.rgb.assign(static_cast<size_t>(3) * grid.width * grid.height, 255);
  for (int64_t i = 0; i < count; ++i) {
    const image::Image& picture = pictures[static_cast<size_t>(i)];
    MM_CHECK(picture.height == height && picture.width == width, "pictures of one size");
    const int64_t top = gap + i / across * (height + gap), left = gap + i % across * (width + gap);
    for (int64_t y = 0; y < height; ++y)
      std::copy_n(picture.rgb.begin() + y * width * 3, width * 3,
                  grid.rgb.begin() + ((top + y) * grid.width + left) * 3);
  }
  return grid;
}

}  // namespace mm::run
