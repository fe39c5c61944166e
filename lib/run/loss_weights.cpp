#include "lib/run/loss_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lib/base/error.h"

namespace mm::run {
namespace {

constexpr std::array<std::pair<std::string_view, LossReduction>, 4> kWords = {{
    {"global_token", LossReduction::kGlobalToken},
    {"micro_mean", LossReduction::kMicroMean},
    {"sample_mean", LossReduction::kSampleMean},
    {"sqrt", LossReduction::kSqrt},
}};

bool by_sample(LossReduction reduction) {
  return reduction == LossReduction::kSampleMean || reduction == LossReduction::kSqrt;
}

}  // namespace

std::optional<LossReduction> loss_reduction(std::string_view word) {
  for (const auto& [name, reduction] : kWords) {
    if (name == word) return reduction;
  }
  return std::nullopt;
}

LossWeights::LossWeights(const LossRecipe& loss, std::vector<data::SampleSize> sizes)
    : reduction_(loss_reduction(loss.reduction).value()),
      micro_packs_(static_cast<size_t>(loss.micro_packs)) {
  if (by_sample(reduction_)) sizes_ = std::move(sizes);
}

double LossWeights::group_targets(const data::PlannedStep& step, size_t pack) const {
  const size_t begin = pack / micro_packs_ * micro_packs_;
  const size_t end = std::min(begin + micro_packs_, step.packs.size());
  double targets = 0;
  for (size_t p = begin; p < end; ++p) targets += static_cast<double>(step.packs[p].targets);
  return targets;
}

double LossWeights::divisor(const data::PlannedStep& step) const {
  if (reduction_ == LossReduction::kGlobalToken) return static_cast<double>(step.targets);
  double sum = 0;
  if (reduction_ == LossReduction::kMicroMean) {
    for (size_t p = 0; p < step.packs.size(); p += micro_packs_)
      sum += group_targets(step, p) > 0 ? 1 : 0;
    return sum;
  }
  for (const data::Pack& pack : step.packs) {
    for (uint32_t row : pack.samples) {
      const double targets = sample_targets(row);
      sum += reduction_ == LossReduction::kSqrt ? std::sqrt(targets) : (targets > 0 ? 1 : 0);
    }
  }
  return sum;
}

at::Tensor LossWeights::of_micro_batch(const data::LoaderStep& step, int rank, int index,
                                       at::ScalarType dtype) const {
  if (reduction_ == LossReduction::kGlobalToken) return {};
  const data::MicroBatch& mb = step.micro_batches.at(static_cast<size_t>(index));
  at::Tensor weights = at::zeros({static_cast<int64_t>(mb.tokens.size())}, at::kDouble);
  auto* out = weights.mutable_data_ptr<double>();
  if (reduction_ == LossReduction::kMicroMean) {
    const std::vector<uint32_t>& mine = step.dealt.at(static_cast<size_t>(rank));
    if (static_cast<size_t>(index) >= mine.size()) return weights.to(dtype);
    const double targets = group_targets(step.plan, mine[static_cast<size_t>(index)]);
    std::fill_n(out, mb.tokens.size(), targets > 0 ? 1 / targets : 0);
    return weights.to(dtype);
  }
  MM_CHECK(mb.sample_ids.size() + 1 == mb.cu_seqlens.size(), "{} samples, {} borders",
           mb.sample_ids.size(), mb.cu_seqlens.size());
  for (size_t s = 0; s < mb.sample_ids.size(); ++s) {
    const double targets = sample_targets(mb.sample_ids[s]);
    const double power = reduction_ == LossReduction::kSqrt ? std::sqrt(targets) : targets;
    std::fill(out + mb.cu_seqlens[s], out + mb.cu_seqlens[s + 1], targets > 0 ? 1 / power : 0);
  }
  return weights.to(dtype);
}

}  // namespace mm::run
