#include "lib/run/held_out_loss.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "lib/base/error.h"
#include "lib/run/patient_work.h"

namespace mm::run {
namespace {

/// As `mmtrain eval` has them, but not more pixels at once than a step of the last stage.
int64_t pictures_at_once(const Recipe& recipe, const data::DatasetManifest& set) {
  int64_t largest = 1;
  for (const data::BucketShape& bucket : set.pictures.buckets)
    largest = std::max(largest, bucket.pixels());
  return std::clamp<int64_t>(recipe.stages.back().batch_pixels / largest, 1,
                             ValidationOptions{}.batch);
}

std::string to_bytes(const std::vector<HeldOut::Sums>& all) {
  std::string bytes;
  for (const HeldOut::Sums& sums : all)
    bytes.append(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(double));
  return bytes;
}

/// `count` lists of equal length.
std::vector<HeldOut::Sums> from_bytes(const std::string& bytes, int64_t count) {
  std::vector<HeldOut::Sums> all(static_cast<size_t>(count));
  if (count == 0) return all;
  const size_t each = bytes.size() / static_cast<size_t>(count);
  MM_CHECK(each % sizeof(double) == 0 && each * static_cast<size_t>(count) == bytes.size(),
           "{} bytes of {} batches", bytes.size(), count);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].resize(each / sizeof(double));
    std::memcpy(all[i].data(), bytes.data() + i * each, each);
  }
  return all;
}

}  // namespace

HeldOutLoss::HeldOutLoss(const Recipe& recipe, const data::DatasetManifest& set,
                         const model::DiffusionConfig& config, const DiffusionInputs& inputs)
    : inputs_(inputs), measured_(model_in_training(recipe, set, config)) {
  measured_.run = "[validation]";
  set_ = data::Dataset::open(recipe.validation.data);
  if (!recipe.validation.encoded.empty()) {
    encoded_ = EncodedSet::open(recipe.validation.encoded, *set_);
    measured_.made_by = inputs.record();
    inputs.require_scaling(*encoded_);
  } else if (inputs.shape().channels > 0) {
    measured_.made_by.vae = "latents";
  }
  const ModelRecipe& model = recipe.model;
  held_out_ = std::make_unique<const HeldOut>(
      measured_, *set_,
      ValidationOptions{.limit = recipe.validation.pictures,
                        .batch = pictures_at_once(recipe, set_->manifest()),
                        .encoded = encoded_.get(),
                        .pictures_at_once = recipe.frozen_pictures_at_once,
                        .captions_at_once = recipe.frozen_captions_at_once},
      OnlineEncoders{.vae = !model.vae.empty(),
                     .text = !model.text_models.empty(),
                     .factor = inputs.shape().factor});
}

bool HeldOutLoss::encodes() const {
  return (measured_.draws_latents() && !has_latents(encoded_.get())) ||
         (measured_.reads_embeddings() && !has_text(encoded_.get()));
}

bool HeldOutLoss::every_rank_measures() const { return !encodes() || inputs_.online_models_draw(); }

std::vector<OpenedData> HeldOutLoss::opened() const {
  std::vector<OpenedData> all{{set_->directory().string(), set_->fingerprint()}};
  if (encoded_) all.push_back({encoded_->directory().string(), encoded_->fingerprint()});
  return all;
}

std::vector<HeldOut::Sums> HeldOutLoss::measure(int64_t first, int64_t stride,
                                                const model::ParamView& params,
                                                const std::stop_token& stop) const {
  std::call_once(loaded_, [&] {
    if (encodes()) measured_.encoders = inputs_.all();
  });
  const model::SimpleParams weights = in_float(*measured_.model, params);
  std::vector<HeldOut::Sums> sums;
  for (int64_t batch = first; batch < batches() && !stop.stop_requested(); batch += stride)
    sums.push_back(held_out_->measure(batch, weights));
  return sums;
}

std::optional<ValidationLoss> measure_held_out(const HeldOutLoss& held_out,
                                               const model::ParamView& params, Comm& comm,
                                               double timeout_s) {
  const int64_t sharing = held_out.every_rank_measures() ? comm.world : 1;
  std::vector<HeldOut::Sums> mine;
  std::function<void(const std::stop_token&)> work;
  if (comm.rank < std::min(sharing, held_out.batches()))
    work = [&](const std::stop_token& stop) {
      mine = held_out.measure(comm.rank, sharing, params, stop);
    };
  // Well within the deadline of a collective.
  const std::chrono::duration<double> beat(std::min(1.0, timeout_s / 4));
  work_patiently(*comm.control, work, beat);
  const std::vector<std::string> bytes = comm.control->all_gather_bytes(to_bytes(mine));
  if (comm.rank != 0) return std::nullopt;
  std::vector<HeldOut::Sums> all(static_cast<size_t>(held_out.batches()));
  for (int64_t rank = 0; rank < sharing; ++rank) {
    const int64_t count = (held_out.batches() - rank + sharing - 1) / sharing;
    const auto theirs =
        from_bytes(bytes.at(static_cast<size_t>(rank)), std::max<int64_t>(0, count));
    for (size_t i = 0; i < theirs.size(); ++i)
      all[static_cast<size_t>(rank) + i * static_cast<size_t>(sharing)] = theirs[i];
  }
  return held_out.mean_of(all);
}

}  // namespace mm::run
