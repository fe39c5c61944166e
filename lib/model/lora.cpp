#include "lib/model/lora.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

#include "lib/base/error.h"
#include "lib/model/adapter_dropout.h"

namespace mm::model {
namespace {

constexpr std::string_view kWeight = ".weight";

/// Glob with '*' only, over the whole text. O(n m): what an earlier star took is never tried again,
/// since the shortest match of what lies between two stars leaves the most behind it.
bool matches_glob(std::string_view text, std::string_view pattern) {
  constexpr size_t kNone = std::string_view::npos;
  size_t t = 0, p = 0, star = kNone, taken = 0;  // the last star, and where in the text it ends
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

bool names_module(std::string_view pattern, std::string_view module) {
  if (pattern.find('*') != std::string_view::npos) return matches_glob(module, pattern);
  return module == pattern || module.ends_with("." + std::string(pattern));
}

/// Tables and the head are two-dimensional too, but no linear layer reads them.
bool is_linear(const ParamSpec& spec) {
  const std::string_view name = spec.name;
  return spec.shape.size() == 2 && name.ends_with(kWeight) &&
         name.find("embed") == std::string_view::npos && !name.ends_with("lm_head.weight");
}

std::string module_of(const ParamSpec& spec) {
  return spec.name.substr(0, spec.name.size() - kWeight.size());
}

/// Base weights to adapt, ascending. Marks the targets that named one.
std::vector<ParamId> choose(const Model& model, const LoraOptions& options) {
  const std::vector<bool> used = params_in_use(model);
  std::vector<ParamId> chosen;
  std::set<const std::string*> met;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const ParamSpec& spec = model.params[i];
    const auto targets = options.targets.find(spec.part);
    if (targets == options.targets.end() || !used[i] || !is_linear(spec)) continue;
    bool wanted = false;
    for (const std::string& pattern : targets->second) {
      if (!names_module(pattern, module_of(spec))) continue;
      met.insert(&pattern);
      wanted = true;
    }
    if (wanted) chosen.push_back(static_cast<ParamId>(i));
  }
  for (const auto& [part, patterns] : options.targets) {
    for (const std::string& pattern : patterns) {
      if (!met.contains(&pattern))
        throw UsageError(
            "lora.{}: \"{}\" names no linear layer of that part; expected such as {}",
            part_name(part), pattern,
            part == Part::kProjector ? "\"linear_1\" or \"*\"" : "\"q_proj\" or \"*\"");
    }
  }
  return chosen;
}

Adapter declare_adapter(Model& model, ParamId base, const LoraOptions& options) {
  const ParamSpec spec = model.params[base];  // a copy: add_param moves the table
  const int64_t out = spec.shape[0], in = spec.shape[1];
  if (options.rank >= std::min(out, in))
    throw UsageError("lora.rank: {} is not below the sides of {} [{}, {}]", options.rank, spec.name,
                     out, in);
  const std::string module = module_of(spec);
  Adapter adapter{.base = base, .scale = options.scale()};
  adapter.a = model.add_param({.name = module + ".lora_A.weight",
                               .shape = {options.rank, in},
                               .part = spec.part,
                               .decay = true,
                               .init = Init::kFanInUniform,
                               .split_dim = spec.split_dim == 1 ? 1 : -1});
  adapter.b = model.add_param({.name = module + ".lora_B.weight",
                               .shape = {out, options.rank},
                               .part = spec.part,
                               .decay = true,
                               .init = Init::kZeros,
                               .split_dim = spec.split_dim == 0 ? 0 : -1});
  return adapter;
}

using Adapters = std::map<ParamId, Adapter>;

/// An adapter as its segment sees it.
struct LocalAdapter {
  Adapter adapter;
  Part part = Part::kLanguage;
  std::string module;
};

/// The adapters of one segment.
struct LocalAdapters {
  std::map<ParamId, LocalAdapter> by_base;
  double dropout = 0;
};

/// Parameters of the step with the adapters of one segment.
class AdaptedParams final : public ParamView {
 public:
  AdaptedParams(const SegmentContext& context, const LocalAdapters& adapters)
      : params_(context.params), draws_(context.batch.row_draws.get()), adapters_(adapters) {}
  at::Tensor get(ParamId id) const override { return params_.get(id); }
  const Adapter* adapter(ParamId id) const override {
    const auto found = adapters_.by_base.find(id);
    return found == adapters_.by_base.end() ? nullptr : &found->second.adapter;
  }
  at::Tensor adapter_input(ParamId id, const at::Tensor& x) const override {
    if (draws_ == nullptr || adapters_.dropout == 0) return x;
    const LocalAdapter& local = adapters_.by_base.at(id);
    if (!params_.get(local.adapter.a).requires_grad()) return x;
    return dropped_input(x, *draws_, {local.part, local.module, adapters_.dropout});
  }

 private:
  const ParamView& params_;
  const RowDraws* draws_;
  const LocalAdapters& adapters_;
};

double elements(const ParamSpec& spec) {
  double count = 1;
  for (const int64_t side : spec.shape) count *= static_cast<double>(side);
  return count;
}

/// What adapters add to a segment's cost. The rows that its matrices multiply follow from its own
/// count: products = 2 * rows * elements of its matrices.
struct AddedCost {
  double base_elements = 0, adapter_elements = 0, rank = 0;
  double dropped_inputs = 0;  ///< columns that are kept again, each with a byte of its mask

  SegmentCost operator()(SegmentCost cost) const {
    const double rows = (cost.forward_flops - cost.attention_flops) / (2 * base_elements);
    cost.adapter_flops = 2 * rows * adapter_elements;
    cost.forward_flops += cost.adapter_flops;
    cost.saved_bytes += rows * (2 * rank + 3 * dropped_inputs);
    return cost;
  }
};

void adapt(Segment& segment, const Model& model, const Adapters& all, double dropout) {
  auto mine = std::make_shared<LocalAdapters>();
  mine->dropout = dropout;
  AddedCost added;
  const std::vector<ParamId> bases = segment.params;
  for (const ParamId id : bases) {
    if (model.params[id].shape.size() >= 2) added.base_elements += elements(model.params[id]);
    const auto found = all.find(id);
    if (found == all.end()) continue;
    const Adapter& adapter = found->second;
    mine->by_base[id] = {adapter, model.params[id].part, module_of(model.params[id])};
    for (const ParamId extra : {adapter.a, adapter.b}) {
      segment.params.push_back(extra);
      added.adapter_elements += elements(model.params[extra]);
    }
    added.rank += static_cast<double>(model.params[adapter.a].shape[0]);
    if (dropout > 0) added.dropped_inputs += static_cast<double>(model.params[adapter.a].shape[1]);
  }
  if (mine->by_base.empty()) return;
  segment.forward = [mine = std::shared_ptr<const LocalAdapters>(mine), plain = segment.forward](
                        const SegmentContext& context, std::span<const at::Tensor> in) {
    const AdaptedParams params(context, *mine);
    return plain(context.with(params), in);
  };
  if (!segment.cost) return;
  segment.cost = [added, plain = segment.cost](const Sizes& sizes) { return added(plain(sizes)); };
}

}  // namespace

void add_lora(Model& model, const LoraOptions& options) {
  MM_CHECK(model.adapters.empty(), "the model has {} adapters already", model.adapters.size());
  Adapters all;
  for (const ParamId base : choose(model, options)) {
    model.adapters.push_back(declare_adapter(model, base, options));
    all.emplace(base, model.adapters.back());
  }
  for (Block& block : model.blocks) {
    for (Step& step : block.steps)
      if (auto* segment = std::get_if<Segment>(&step)) adapt(*segment, model, all, options.dropout);
  }
}

std::vector<bool> adapter_params(const Model& model) {
  std::vector<bool> flags(model.params.size(), false);
  for (const Adapter& adapter : model.adapters) flags[adapter.a] = flags[adapter.b] = true;
  return flags;
}

bool has_adapters(const Model& model, Part part) {
  return std::ranges::any_of(model.adapters,
                             [&](const Adapter& a) { return model.params[a.base].part == part; });
}

}  // namespace mm::model
