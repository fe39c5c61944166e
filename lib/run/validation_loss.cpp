#include "lib/run/validation_loss.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/error.h"
#include "lib/data/collate.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/objective_draw.h"
#include "lib/run/diffusion_batch.h"

namespace mm::run {
namespace {

bool has_latents(const EncodedSet* encoded) {
  return encoded != nullptr && encoded->settings().channels > 0;
}
bool has_text(const EncodedSet* encoded) {
  return encoded != nullptr && encoded->settings().text_width > 0;
}

/// What stands in place of pixels and ids is there, and of the run's models.
void check_inputs(const TrainedDiffusion& trained, const EncodedSet* encoded) {
  const Encoders* online = trained.encoders.get();
  if ((trained.draws_latents() && !has_latents(encoded) && !(online && online->vae)) ||
      (trained.reads_embeddings() && !has_text(encoded) && !(online && online->text)))
    throw UsageError(
        "{}: trained on latents or text embeddings; give what mmshard encode made of the set "
        "(--encoded DIR), or the models (--vae DIR, --text-encoder DIR)",
        trained.run.string());
  if ((!trained.draws_latents() && has_latents(encoded)) ||
      (!trained.reads_embeddings() && has_text(encoded)))
    throw UsageError("--encoded: {} was trained on pixels, or on ids of captions",
                     trained.run.string());
  if (trained.draws_latents() && has_latents(encoded) && !trained.made_by.vae.empty())
    encoded->require_vae(trained.made_by.vae);
  if (trained.reads_embeddings() && has_text(encoded) && !trained.made_by.text.empty())
    encoded->require_text(trained.made_by.text, trained.made_by.writing);
}

int64_t factor_of(const TrainedDiffusion& trained, const EncodedSet* encoded) {
  return has_latents(encoded) ? encoded->settings().factor : trained.factor();
}

void check_set(const TrainedDiffusion& trained, const data::Dataset& set,
               const EncodedSet* encoded) {
  const data::DatasetManifest& these = set.manifest();
  const std::string origin = set.directory().string();
  check_inputs(trained, encoded);
  const int64_t patch = trained.config.patch * factor_of(trained, encoded);
  if (these.pictures.buckets.empty())
    throw UsageError("{}: not a bucketed set, and {} draws pictures by buckets; give one as --data",
                     origin, trained.run.string());
  if (these.tokenizer.file.xxh3_128 != trained.data.tokenizer.file.xxh3_128)
    throw UsageError("{}: packed with another tokenizer or other classes than {} was trained with",
                     origin, trained.run.string());
  for (const data::BucketShape& bucket : these.pictures.buckets) {
    if (bucket.height % patch != 0 || bucket.width % patch != 0)
      throw UsageError("{}: has pictures of {}x{} pixels, which patches of {} do not divide",
                       origin, bucket.width, bucket.height, patch);
  }
  if (set.rows() == 0) throw DataError("{}: no sample in it", origin);
}

/// The first rows of the set in batches of one shape, in the order of the rows.
std::vector<data::Pack> batches_of(std::span<const data::SampleSize> sizes,
                                   const ValidationOptions& options) {
  const size_t rows =
      options.limit > 0 ? std::min(sizes.size(), static_cast<size_t>(options.limit)) : sizes.size();
  std::map<data::BucketShape, std::vector<uint32_t>> by_shape;
  for (size_t row = 0; row < rows; ++row)
    by_shape[sizes[row].bucket].push_back(static_cast<uint32_t>(row));
  std::vector<data::Pack> batches;
  for (const auto& [shape, members] : by_shape) {
    const auto most = static_cast<size_t>(options.batch);
    for (size_t first = 0; first < members.size(); first += most)
      batches.push_back(data::make_pack(
          sizes, std::span(members).subspan(first, std::min(most, members.size() - first))));
  }
  return batches;
}

/// The batch with all its pictures at one time, under that time's noise.
model::Batch at_time(const model::Batch& batch, const std::vector<uint64_t>& rows,
                     const model::DrawnTime& time, uint64_t number) {
  auto input = std::make_shared<model::DiffusionInput>(*batch.diffusion);
  input->noise = at::empty_like(input->clean);
  for (size_t i = 0; i < rows.size(); ++i)
    model::fill_normal(input->noise[static_cast<int64_t>(i)],
                       model::sample_stream(0, "validation", number, rows[i]));
  input->times = at::full_like(batch.diffusion->times, time.time);
  input->sigmas = at::full_like(batch.diffusion->sigmas, time.sigma);
  model::Batch moved = batch;
  moved.diffusion = std::move(input);
  return moved;
}

/// Adds the batch's sums over pictures to each time.
struct Measured {
  const TrainedDiffusion& trained;
  const model::ParamView& params;
  const std::vector<model::DrawnTime>& times;
};
void add_losses(const Measured& measured, const model::Batch& batch,
                const std::vector<uint64_t>& rows, ValidationLoss& sums) {
  const auto& [trained, params, times] = measured;
  const model::Slot variance = model::find_slot(*trained.model, "variance_losses");
  const double elements =
      trained.objective.per_element ? static_cast<double>(batch.diffusion->clean[0].numel()) : 1;
  for (size_t k = 0; k < times.size(); ++k) {
    const model::SlotValues values =
        model::eager_forward(*trained.model, params, at_time(batch, rows, times[k], k));
    const auto sum_of = [&](model::Slot slot) {
      return values.at(static_cast<size_t>(slot)).sum().item<double>() / elements;
    };
    sums.at[k].loss += sum_of(trained.model->sample_losses_slot);
    sums.at[k].variance += sum_of(variance);
  }
}

}  // namespace

double ValidationLoss::mean() const {
  double sum = 0;
  for (const AtTime& one : at) sum += one.loss;
  return sum / static_cast<double>(at.size());
}

std::string ValidationLoss::name_of(const AtTime& one) const {
  return fmt::format("{:.{}f}", one.time, flow ? 4 : 0);
}

Json ValidationLoss::to_json() const {
  Json losses = Json::object(), terms = Json::object();
  for (const AtTime& one : at) {
    losses[name_of(one)] = one.loss;
    terms[name_of(one)] = one.variance;
  }
  Json json{{"samples", samples},
            {"averaged", averaged},
            {"mean", mean()},
            {flow ? "by_sigma" : "by_step", losses}};
  if (bound) json["variance_terms"] = terms;
  return json;
}

std::string ValidationLoss::table() const {
  std::string out = fmt::format("{:>8} {:>12}{}\n", flow ? "sigma" : "step", "loss",
                                bound ? "  variance term" : "");
  for (const AtTime& one : at)
    out += fmt::format("{:>8} {:>12.6f}{}\n", name_of(one), one.loss,
                       bound ? fmt::format("  {:>13.6f}", one.variance) : "");
  return out + fmt::format("{:>8} {:>12.6f}  over {} pictures{}\n", "mean", mean(), samples,
                           averaged ? ", averaged weights" : "");
}

ValidationLoss validation_loss(const TrainedDiffusion& trained, const model::ParamView& params,
                               const data::Dataset& set, const ValidationOptions& options) {
  MM_CHECK(options.times > 0 && options.batch > 0, "{} times, batches of {}", options.times,
           options.batch);
  check_set(trained, set, options.encoded);
  const std::vector<data::SampleSize> sizes = set.sizes();
  const std::vector<model::DrawnTime> times = model::fixed_times(trained.objective, options.times);
  ValidationLoss result{.averaged = trained.averaged,
                        .flow = trained.objective.is_flow(),
                        .bound = trained.objective.variational_bound};
  for (const model::DrawnTime& time : times)
    result.at.push_back({.time = result.flow ? time.sigma : time.time});
  for (const data::Pack& pack : batches_of(sizes, options)) {
    const data::Assembled assembled = data::assemble(set, sizes, pack);
    if (!assembled.bad.empty())
      throw DataError("{}: {}", set.directory().string(), assembled.bad.front().message);
    const model::Batch batch =
        to_diffusion_batch(assembled.batch, {.config = trained.config,
                                             .objective = trained.objective,
                                             .norm = trained.norm,
                                             .encoded = options.encoded,
                                             .online = trained.encoders.get()});
    add_losses({trained, params, times}, batch, assembled.batch.sample_ids, result);
    result.samples += pack.images;
  }
  for (ValidationLoss::AtTime& one : result.at) {
    one.loss /= static_cast<double>(result.samples);
    one.variance /= static_cast<double>(result.samples);
  }
  return result;
}

}  // namespace mm::run
