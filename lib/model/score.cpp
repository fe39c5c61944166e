#include "lib/model/score.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/eager.h"
#include "lib/model/generate.h"
#include "lib/model/kv_cache.h"
#include "lib/model/patch_layout.h"

namespace mm::model {
namespace {

using Continuations = std::span<const std::vector<int64_t>>;

at::Tensor log_probabilities(const at::Tensor& logits) {
  return at::log_softmax(logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat), -1);
}

/// First tokens: all from the one row behind the prompt.
void score_first(const at::Tensor& logits, Continuations continuations,
                 std::span<ContinuationScore> scores) {
  const at::Tensor row = log_probabilities(logits)[0].to(at::kDouble);
  const double* values = row.const_data_ptr<double>();
  for (size_t i = 0; i < continuations.size(); ++i) {
    MM_CHECK(!continuations[i].empty(), "continuation {} is empty", i);
    const int64_t token = continuations[i].front();
    MM_CHECK(token >= 0 && token < row.numel(),
             "token {} of continuation {} is outside the vocabulary", token, i);
    scores[i] = {values[token], static_cast<int64_t>(continuations[i].size())};
  }
}

/// The others, of a group of continuations in one pass: token j is predicted behind token j - 1.
class Rest {
 public:
  Rest(const Model& model, const ParamView& params, const Batch& prompt, const KvCache& prefix)
      : model_(model), params_(params), prompt_(prompt), prefix_(prefix) {}

  void score(Continuations group, std::span<ContinuationScore> scores) const {
    std::vector<std::vector<int64_t>> inputs;
    std::vector<int64_t> next;
    for (const auto& tokens : group) {
      inputs.emplace_back(tokens.begin(), tokens.end() - 1);
      next.insert(next.end(), tokens.begin() + 1, tokens.end());
    }
    if (next.empty()) return;
    KvCache cache(&prefix_);
    const std::vector<int64_t> start(group.size(), next_positions(prompt_).front());
    const SlotValues slots =
        eager_forward(model_, params_, continuation_batch(inputs, start, prompt_), &cache);
    const at::Tensor column = at::tensor(next, at::kLong).unsqueeze(1);
    const at::Tensor gained =
        log_probabilities(slots[model_.logits_slot]).gather(1, column).to(at::kDouble);
    const double* values = gained.const_data_ptr<double>();
    for (size_t i = 0; i < group.size(); ++i) {
      for (size_t j = 1; j < group[i].size(); ++j) scores[i].log_likelihood += *values++;
    }
  }

 private:
  const Model& model_;
  const ParamView& params_;
  const Batch& prompt_;
  const KvCache& prefix_;
};

}  // namespace

std::vector<ContinuationScore> score_continuations(const Model& model, const ParamView& params,
                                                   const Batch& prompt, Continuations continuations,
                                                   int64_t max_tokens_at_once) {
  MM_CHECK(prompt.cu_seqlens.size() == 2 && prompt.cu_seqlens[1] > 0,
           "expected one prompt that is not empty, got {}", prompt.cu_seqlens.size() - 1);
  KvCache prefix(1, prompt.cu_seqlens[1]);
  const SlotValues slots = eager_forward(model, params, prompt, &prefix);
  prefix.advance(prompt.cu_seqlens);
  std::vector<ContinuationScore> scores(continuations.size());
  score_first(slots[model.logits_slot], continuations, scores);
  const Rest rest(model, params, prompt, prefix);
  for (size_t begin = 0; begin < continuations.size();) {
    size_t end = begin;
    int64_t tokens = 0;
    while (end < continuations.size() &&
           (end == begin || tokens + scores[end].tokens <= max_tokens_at_once)) {
      tokens += scores[end++].tokens;
    }
    rest.score(continuations.subspan(begin, end - begin),
               std::span(scores).subspan(begin, end - begin));
    begin = end;
  }
  return scores;
}

}  // namespace mm::model
