#include "lib/run/validation_loss.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "lib/base/error.h"
#include "lib/data/collate.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/objective_draw.h"
#include "lib/run/diffusion_batch.h"
#include "lib/run/encoded_store.h"

namespace mm::run {
namespace {

/// What stands in place of pixels and ids is there, and of the run's models.
void check_inputs(const TrainedDiffusion& trained, const EncodedSet* encoded,
                  const OnlineEncoders& online) {
  if ((trained.draws_latents() && !has_latents(encoded) && !online.vae) ||
      (trained.reads_embeddings() && !has_text(encoded) && !online.text))
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

void check_set(const TrainedDiffusion& trained, const data::Dataset& set, const EncodedSet* encoded,
               const OnlineEncoders& online) {
  const data::DatasetManifest& these = set.manifest();
  const std::string origin = set.directory().string();
  check_inputs(trained, encoded, online);
  const int64_t factor = has_latents(encoded) ? encoded->settings().factor : online.factor;
  const int64_t patch = trained.config.patch * factor;
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

/// The first rows of the set in batches of one shape, in the order of the rows, but for those that
/// the encoded set lacks.
std::vector<data::Pack> batches_of(std::span<const data::SampleSize> sizes,
                                   const ValidationOptions& options) {
  const size_t rows =
      options.limit > 0 ? std::min(sizes.size(), static_cast<size_t>(options.limit)) : sizes.size();
  std::map<data::BucketShape, std::vector<uint32_t>> by_shape;
  for (size_t row = 0; row < rows; ++row) {
    if (options.encoded != nullptr && !options.encoded->has(row)) continue;
    by_shape[sizes[row].bucket].push_back(static_cast<uint32_t>(row));
  }
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

}  // namespace

HeldOut::HeldOut(const TrainedDiffusion& trained, const data::Dataset& set,
                 const ValidationOptions& options, const OnlineEncoders& online)
    : trained_(trained), set_(set), options_(options) {
  MM_CHECK(options.times > 0 && options.batch > 0, "{} times, batches of {}", options.times,
           options.batch);
  check_set(trained, set, options.encoded, online);
  sizes_ = set.sizes();
  times_ = model::fixed_times(trained.objective, options.times);
  batches_ = batches_of(sizes_, options);
  if (batches_.empty())
    throw DataError(
        "{}: none of its samples is in the encoded set; encode it again (mmshard encode)",
        set.directory().string());
}

HeldOut::Sums HeldOut::measure(int64_t number, const model::ParamView& params) const {
  std::optional<EncodedStore> stored;
  if (options_.encoded != nullptr) stored.emplace(set_, *options_.encoded);
  const data::Assembled assembled =
      data::assemble(stored ? static_cast<const data::SampleStore&>(*stored) : set_, sizes_,
                     batches_.at(static_cast<size_t>(number)));
  if (!assembled.bad.empty())
    throw DataError("{}: {}", set_.directory().string(), assembled.bad.front().message);
  const model::Batch batch =
      to_diffusion_batch(assembled.batch, {.config = trained_.config,
                                           .objective = trained_.objective,
                                           .norm = trained_.norm,
                                           .encoded = options_.encoded,
                                           .online = trained_.encoders.get(),
                                           .pictures_at_once = options_.pictures_at_once,
                                           .captions_at_once = options_.captions_at_once});
  const model::Slot variance = model::find_slot(*trained_.model, "variance_losses");
  const double elements =
      trained_.objective.per_element ? static_cast<double>(batch.diffusion->clean[0].numel()) : 1;
  Sums sums{static_cast<double>(assembled.batch.sample_ids.size())};
  for (size_t k = 0; k < times_.size(); ++k) {
    const model::SlotValues values = model::eager_forward(
        *trained_.model, params, at_time(batch, assembled.batch.sample_ids, times_[k], k));
    for (const model::Slot slot : {trained_.model->sample_losses_slot, variance})
      sums.push_back(values.at(static_cast<size_t>(slot)).sum().item<double>() / elements);
  }
  return sums;
}

ValidationLoss HeldOut::mean_of(const std::vector<Sums>& batches) const {
  ValidationLoss result{.averaged = trained_.averaged,
                        .flow = trained_.objective.is_flow(),
                        .bound = trained_.objective.variational_bound};
  for (const model::DrawnTime& time : times_)
    result.at.push_back({.time = result.flow ? time.sigma : time.time});
  double pictures = 0;
  for (const Sums& sums : batches) {
    MM_CHECK(sums.size() == 1 + 2 * times_.size(), "{} sums of {} times", sums.size(),
             times_.size());
    pictures += sums[0];
    for (size_t k = 0; k < times_.size(); ++k) {
      result.at[k].loss += sums[1 + 2 * k];
      result.at[k].variance += sums[2 + 2 * k];
    }
  }
  result.samples = static_cast<int64_t>(pictures);
  for (ValidationLoss::AtTime& one : result.at) {
    one.loss /= pictures;
    one.variance /= pictures;
  }
  return result;
}

double ValidationLoss::mean() const {
  double sum = 0;
  for (const AtTime& one : at) sum += one.loss;
  return sum / static_cast<double>(at.size());
}

std::string ValidationLoss::name_of(const AtTime& one) const {
  return fmt::format("{:.{}f}", one.time, flow ? 4 : 0);
}

std::map<std::string, double> ValidationLoss::by_time() const {
  std::map<std::string, double> losses;
  for (const AtTime& one : at) losses[name_of(one)] = one.loss;
  return losses;
}

Json ValidationLoss::to_json() const {
  const Json losses = by_time();
  Json terms = Json::object();
  for (const AtTime& one : at) terms[name_of(one)] = one.variance;
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
  const Encoders* encoders = trained.encoders.get();
  const HeldOut held_out(trained, set, options,
                         {.vae = encoders != nullptr && encoders->vae != nullptr,
                          .text = encoders != nullptr && encoders->text != nullptr,
                          .factor = trained.factor()});
  std::vector<HeldOut::Sums> sums;
  for (int64_t batch = 0; batch < held_out.batches(); ++batch)
    sums.push_back(held_out.measure(batch, params));
  return held_out.mean_of(sums);
}

}  // namespace mm::run
