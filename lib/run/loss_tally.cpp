#include "lib/run/loss_tally.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/data/source_json.h"

namespace mm::run {
namespace {

constexpr size_t kModalities = 2;  ///< text, picture
constexpr const char* kModalityNames[kModalities] = {"text", "picture"};

std::vector<std::string> names_of(const data::Dataset& set) {
  const Json& options = set.manifest().options;
  return data::source_names(options.is_object() ? options.value("source", Json()) : Json());
}

}  // namespace

LossTally::LossTally(const data::Dataset& set) : set_(set), sources_(names_of(set)) {}

LossBy LossTally::of(const StageStep& step, dist::Group& control) const {
  MM_CHECK(step.sample_losses.size() == step.samples.size() || step.sample_losses.empty(),
           "{} losses of {} samples", step.sample_losses.size(), step.samples.size());
  const auto rows = static_cast<int64_t>(kModalities + sources_.size());
  const at::Tensor sums = at::zeros({rows, 2}, at::kDouble);
  auto table = sums.accessor<double, 2>();
  for (size_t i = 0; i < step.sample_losses.size(); ++i) {
    const uint64_t row = step.samples[i];
    const size_t source = std::min<size_t>(set_.index().source(row), sources_.size() - 1);
    const size_t modality = set_.index().size(row).images > 0 ? 1 : 0;
    for (const size_t place : {modality, kModalities + source}) {
      table[static_cast<int64_t>(place)][0] += step.sample_losses[i];
      table[static_cast<int64_t>(place)][1] += static_cast<double>(step.sample_targets[i]);
    }
  }
  control.all_reduce_sum(sums);
  LossBy by;
  for (int64_t place = 0; place < rows; ++place) {
    if (table[place][1] == 0) continue;
    const double mean = table[place][0] / table[place][1];
    const auto index = static_cast<size_t>(place);
    if (index < kModalities)
      by.modality[kModalityNames[index]] = mean;
    else
      by.source[sources_[index - kModalities]] = mean;
  }
  return by;
}

}  // namespace mm::run
