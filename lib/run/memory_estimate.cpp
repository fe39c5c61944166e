#include "lib/run/memory_estimate.h"

#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include <algorithm>

#include "lib/health/node_report.h"
#include "lib/model/language_head.h"
#include "lib/run/model_setup.h"
#include "lib/run/step_setup.h"

namespace mm::run {
namespace {

constexpr double kGiB = 1 << 30;

double bytes_of(at::ScalarType dtype) { return static_cast<double>(c10::elementSize(dtype)); }

void add_states(const MemoryInputs& in, MemoryEstimate& estimate) {
  const double master = bytes_of(in.precision.master);
  for (size_t i = 0; i < in.model.params.size(); ++i) {
    const model::ParamSpec& spec = in.model.params[i];
    const auto elements = static_cast<double>(c10::multiply_integers(spec.shape));
    const at::ScalarType compute = in.precision.compute_of(spec.part);
    estimate.weights += elements * bytes_of(compute);
    if (in.masters[i] && compute != in.precision.master) estimate.masters += elements * master;
    if (!in.trainable[i]) continue;
    estimate.gradients += elements * master;
    estimate.moments += elements * master * in.moments;
  }
}

double saved_by(const model::Model& model, const step::SegmentRow& row, const model::Sizes& sizes,
                double element_bytes) {
  double bytes = 0;
  const std::vector<model::Step>& steps = model.blocks[row.block].steps;
  for (int s = row.first_step; s < row.first_step + row.steps; ++s) {
    const auto* segment = std::get_if<model::Segment>(&steps[s]);
    if (segment != nullptr && segment->cost) bytes += segment->cost(sizes).saved_bytes;
  }
  return bytes * element_bytes / 2;
}

void add_activations(const MemoryInputs& in, const step::Program& program,
                     const PackFootprint& pack, MemoryEstimate& estimate) {
  double again = 0;
  for (const step::SegmentRow& row : program.segments) {
    const model::Part part = in.model.blocks[row.block].part;
    const double element = bytes_of(in.precision.compute_of(part));
    const double saved = saved_by(in.model, row, pack.sizes, element);
    if (row.has_backward && !row.recompute) {
      estimate.activations += saved;
    } else {
      // Without a tape a block's tensors live while it runs; half of what it would save is an
      // upper bound of that.
      again = std::max(again, row.recompute ? saved : saved / 2);
      // What a recomputed block keeps.
      if (row.recompute)
        estimate.activations += pack.block_input[static_cast<size_t>(part)] * element *
                                static_cast<double>(row.in.size());
    }
  }
  estimate.activations += again;
  // The product and its fp32 softmax.
  estimate.logits = std::min(pack.logits, static_cast<double>(model::kLogitElements)) * 8;
  estimate.pictures = pack.pictures * (bytes_of(in.precision.compute_of(model::Part::kVision)) + 1);
}

}  // namespace

Json MemoryEstimate::to_json() const {
  return {{"weights", weights},         {"masters", masters},
          {"gradients", gradients},     {"moments", moments},
          {"logits", logits},           {"pictures", pictures},
          {"activations", activations}, {"drawing", drawing},
          {"encoding", encoding},       {"total", total()}};
}

/// The moving average, kept as the masters are, and what a rank that draws [sample]'s grid or
/// measures [validation] adds: fp32 copies of what is kept in another dtype (optim::SavedParams).
static void add_average_and_drawing(const StageMemoryInputs& in, MemoryEstimate& estimate) {
  const auto& [recipe, index, model, family, store] = in;
  const optim::Precision precision = run_precision(recipe);
  const std::vector<bool> averaged = trained_from(recipe, model, 0),
                          masters = trained_from(recipe, model, index);
  for (size_t i = 0; i < model.params.size(); ++i) {
    const model::ParamSpec& spec = model.params[i];
    const auto elements = static_cast<double>(c10::multiply_integers(spec.shape));
    const bool average = recipe.ema.on() && averaged[i];
    if (average) estimate.masters += elements * bytes_of(precision.master);
    if (recipe.sample.every_steps == 0 && recipe.validation.every_steps == 0) continue;
    const at::ScalarType kept =
        average || masters[i] ? precision.master : precision.compute_of(spec.part);
    if (kept != at::kFloat) estimate.drawing += elements * bytes_of(at::kFloat);
  }
}

MemoryEstimate estimate_memory(const MemoryInputs& inputs, const step::Program& program,
                               const PackFootprint& footprint) {
  MemoryEstimate estimate;
  add_states(inputs, estimate);
  add_activations(inputs, program, footprint, estimate);
  return estimate;
}

StageMemory stage_memory(const StageMemoryInputs& in) {
  const StageRecipe& stage = in.recipe.stages.at(in.index);
  const std::vector<bool> trainable = trainable_flags(in.model, stage.train);
  StageMemory result;
  result.costliest = data::PlanCursor(in.store.sizes(), plan_options(in.recipe, stage)).costliest();
  step::BuildOptions build = build_options(in.recipe, stage, trainable);
  build.buckets.emplace_back();
  for (size_t i = 0; i < trainable.size(); ++i) {
    if (trainable[i]) build.buckets[0].params.push_back(static_cast<model::ParamId>(i));
  }
  const optim::Precision precision = run_precision(in.recipe);
  const std::vector<bool> masters = trained_from(in.recipe, in.model, in.index);
  result.estimate = estimate_memory({.model = in.model,
                                     .precision = precision,
                                     .trainable = trainable,
                                     .masters = masters,
                                     .moments = stage.optimizer == "lion" ? 1 : 2},
                                    step::build_step(in.model, build),
                                    in.family.footprint(result.costliest.packs.at(0)));
  add_average_and_drawing(in, result.estimate);
  result.estimate.weights += 4 * in.family.frozen_elements();
  result.estimate.encoding = in.family.encoding_bytes(in.index, result.costliest.packs.at(0));
  result.estimate.encodes_ahead = in.recipe.frozen_ahead;
  return result;
}

std::optional<double> memory_available(int local_ranks) {
  const health::MemoryReport report = health::read_memory();
  if (!report.available_bytes) return std::nullopt;
  const uint64_t bytes = std::min(*report.available_bytes,
                                  report.cgroup_limit_bytes.value_or(*report.available_bytes));
  return static_cast<double>(bytes) / std::max(1, local_ranks);
}

std::string memory_shortage(const MemoryEstimate& estimate, double available,
                            const std::string& stage) {
  if (estimate.total() <= available) return "";
  const std::string drawing =
      estimate.drawing > 0 ? fmt::format("; for drawing grids in place of the last three {:.2f}",
                                         estimate.drawing / kGiB)
                           : "";
  const std::string encoding =
      estimate.encoding > 0
          ? fmt::format(
                "; for frozen encoders before the forward {:.2f} (frozen.pictures_at_once, "
                "frozen.captions_at_once lower it)",
                estimate.encoding / kGiB)
          : "";
  return fmt::format(
      "stage {} needs about {:.2f} GiB a rank (weights {:.2f}, masters {:.2f}, gradients {:.2f}, "
      "moments {:.2f}, activations of the costliest pack {:.2f}, logits {:.2f}, pictures "
      "{:.2f}{}{}), "
      "{:.2f} GiB are available; shorten sequence_length, use recompute.mode, precision.compute "
      "bf16, or more nodes (run.memory_check = \"off\" tries all the same)",
      stage, estimate.total() / kGiB, estimate.weights / kGiB, estimate.masters / kGiB,
      estimate.gradients / kGiB, estimate.moments / kGiB, estimate.activations / kGiB,
      estimate.logits / kGiB, estimate.pictures / kGiB, drawing, encoding, available / kGiB);
}

}  // namespace mm::run
