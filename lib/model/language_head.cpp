#include "lib/model/language_head.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/model/cross_entropy.h"
#include "lib/model/kv_cache.h"
#include "lib/model/norms.h"
#include "lib/model/rows.h"

namespace mm::model {
namespace {

struct Head {
  ParamId norm = -1, weight = -1;
  double eps = 1e-6;
  int64_t vocab = 0;
};

at::Tensor logits_of(const Head& head, const SegmentContext& context, const at::Tensor& rows) {
  const at::NoGradGuard no_grad;
  const at::Tensor hidden = rms_norm(rows, context.params.get(head.norm), head.eps);
  return at::linear(hidden, context.params.get(head.weight));
}

at::Tensor wanted_logits(const Head& head, const SegmentContext& context, const at::Tensor& x) {
  if (context.kv_cache != nullptr &&
      context.kv_cache->logits == KvCache::Logits::kLastOfEachSample) {
    const auto& borders = context.batch.cu_seqlens;
    std::vector<int64_t> last;
    for (size_t i = 1; i < borders.size(); ++i) last.push_back(borders[i] - 1);
    return logits_of(head, context, x.index_select(0, at::tensor(last, at::kLong)));
  }
  const bool all = context.batch.want_logits || context.kv_cache != nullptr;
  return all ? logits_of(head, context, x) : at::empty({0, head.vocab}, x.options());
}

/// The sample of each row, `rows` being positions in the packed row.
at::Tensor samples_of(const Batch& batch, const at::Tensor& rows) {
  const std::vector<int64_t>& borders = batch.cu_seqlens;
  const at::Tensor ends = borders.empty()
                              ? at::empty({0}, at::kLong)
                              : at::tensor(at::ArrayRef<int64_t>(borders).slice(1), at::kLong);
  return at::searchsorted(ends.to(rows.device()), rows, /*out_int32=*/false, /*right=*/true);
}

/// {loss, loss of each sample}.
std::vector<at::Tensor> losses_of(const Head& head, const SegmentContext& context,
                                  const at::Tensor& x) {
  const at::Tensor& targets = context.batch.targets;
  const at::Tensor rows = targets.ne(kNoTarget).nonzero().flatten();
  const at::Tensor hidden = rms_norm(select_rows(x, rows), context.params.get(head.norm), head.eps);
  const bool wide = x.scalar_type() == at::kDouble;
  const at::Tensor& weights = context.batch.target_weights;
  const RowTerms terms{
      weights.defined() ? weights.index_select(0, rows) : at::Tensor(),
      at::empty({rows.size(0)},
                x.options().dtype(wide ? at::kDouble : at::kFloat).requires_grad(false))};
  at::Tensor loss = linear_cross_entropy(hidden, context.params.get(head.weight),
                                         targets.index_select(0, rows), kLogitElements, terms);
  at::Tensor of_samples =
      at::zeros({std::max<int64_t>(1, std::ssize(context.batch.cu_seqlens)) - 1},
                x.options().dtype(at::kDouble).requires_grad(false));
  of_samples.index_add_(0, samples_of(context.batch, rows), terms.losses.to(at::kDouble));
  return {std::move(loss), std::move(of_samples)};
}

SegmentCost head_cost(const TextConfig& c, const Sizes& sizes) {
  const auto targets = static_cast<double>(sizes.targets), hidden = static_cast<double>(c.hidden);
  return {.forward_flops = 2 * hidden * static_cast<double>(c.vocab) * targets,
          // Rows and their norms; their gradient in the type of the products, which may be fp32.
          .saved_bytes = targets * 8 * hidden + 2 * hidden * static_cast<double>(c.vocab)};
}

}  // namespace

void add_language_head(Model& model, const TextConfig& config, const std::string& prefix, Slot x,
                       ParamId table) {
  Head head{.eps = config.norm_eps, .vocab = config.vocab};
  head.norm = model.add_param(
      {.name = prefix + "model.norm.weight", .shape = {config.hidden}, .init = Init::kOnes});
  head.weight = config.tied_head ? table
                                 : model.add_param({.name = prefix + "lm_head.weight",
                                                    .shape = {config.vocab, config.hidden},
                                                    .decay = true,
                                                    .split_dim = 0});
  model.loss_slot = model.add_slot("loss");
  model.logits_slot = model.add_slot("logits");
  model.sample_losses_slot = model.add_slot("sample_losses");
  Segment segment{.name = "head",
                  .in = {x},
                  .out = {model.loss_slot, model.logits_slot, model.sample_losses_slot}};
  segment.params = {head.norm, head.weight};
  segment.yields_loss = true;
  segment.forward = [head](const SegmentContext& context, std::span<const at::Tensor> in) {
    std::vector<at::Tensor> out = losses_of(head, context, in[0]);
    out.insert(out.begin() + 1, wanted_logits(head, context, in[0]));
    return out;
  };
  segment.cost = [config](const Sizes& sizes) { return head_cost(config, sizes); };
  model.blocks.push_back({"head", Part::kLanguage, {std::move(segment)}});
}

}  // namespace mm::model
