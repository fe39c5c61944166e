#include "lib/model/generate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "lib/base/error.h"
#include "lib/model/cross_entropy.h"
#include "lib/model/eager.h"
#include "lib/model/kv_cache.h"
#include "lib/model/patch_layout.h"

namespace mm::model {
namespace {

// Most likely token of each row of [n, vocab].
std::vector<int64_t> choose(at::Tensor logits, const std::vector<int64_t>& banned) {
  for (int64_t token : banned) {
    if (token >= 0 && token < logits.size(1))
      logits.select(1, token).fill_(-std::numeric_limits<float>::infinity());
  }
  const at::Tensor best = logits.argmax(1);
  const int64_t* ids = best.const_data_ptr<int64_t>();
  return {ids, ids + best.numel()};
}

/// Samples that still grow, with the token that each has just been given.
struct Growing {
  std::vector<std::vector<int64_t>> results;
  std::vector<bool> done;

  bool any() const {
    return !std::ranges::all_of(done, [](bool d) { return d; });
  }

  void take(const std::vector<int64_t>& tokens, const GenerateOptions& options) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (done[i]) continue;
      if (std::ranges::find(options.stop_tokens, tokens[i]) != options.stop_tokens.end()) {
        done[i] = true;
        continue;
      }
      results[i].push_back(tokens[i]);
      done[i] = static_cast<int64_t>(results[i].size()) >= options.max_new_tokens;
    }
  }
};

int64_t longest_sample(const Batch& batch) {
  int64_t longest = 0;
  for (size_t i = 1; i < batch.cu_seqlens.size(); ++i) {
    const int64_t length = batch.cu_seqlens[i] - batch.cu_seqlens[i - 1];
    MM_CHECK(length > 0, "sample {} of the prompts is empty", i - 1);
    longest = std::max(longest, length);
  }
  return longest;
}

}  // namespace

Batch continuation_batch(const std::vector<std::vector<int64_t>>& tokens,
                         const std::vector<int64_t>& start, const Batch& like) {
  Batch batch;
  batch.cu_seqlens = {0};
  std::vector<int64_t> ids, positions;
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (size_t j = 0; j < tokens[i].size(); ++j) {
      ids.push_back(tokens[i][j]);
      positions.push_back(start[i] + static_cast<int64_t>(j));
    }
    batch.cu_seqlens.push_back(static_cast<int64_t>(ids.size()));
  }
  batch.tokens = at::tensor(ids, at::kLong);
  batch.positions = at::tensor(positions, at::kLong);
  batch.targets = at::full({batch.tokens.size(0)}, kNoTarget, at::kLong);
  batch.image_token_index = at::empty({0}, at::kLong);
  batch.pixel_values = like.pixel_values.narrow(0, 0, 0);
  if (like.patch_layout != nullptr)
    batch.patch_layout = std::make_shared<PatchLayout>(layout_patches({}, {}));
  batch.sizes.tokens = batch.tokens.size(0);
  batch.sizes.samples = static_cast<int64_t>(tokens.size());
  batch.sizes.patches = like.sizes.patches;
  return batch;
}

std::vector<std::vector<int64_t>> generate_greedy(const Model& model, const ParamView& params,
                                                  const Batch& prompts,
                                                  const GenerateOptions& options) {
  const auto samples = static_cast<int64_t>(prompts.cu_seqlens.size()) - 1;
  Growing growing{std::vector<std::vector<int64_t>>(samples),
                  std::vector<bool>(samples, options.max_new_tokens <= 0)};
  KvCache cache(samples, longest_sample(prompts) + std::max<int64_t>(options.max_new_tokens, 0));
  const auto pass = [&](const Batch& batch) {
    const SlotValues slots = eager_forward(model, params, batch, &cache);
    cache.advance(batch.cu_seqlens);
    return choose(slots[model.logits_slot], options.banned_tokens);
  };
  if (!growing.any()) return growing.results;
  std::vector<int64_t> last = pass(prompts);
  growing.take(last, options);
  // Positions go on behind the prompt's, which pictures may have shortened.
  std::vector<int64_t> position = next_positions(prompts);
  while (growing.any()) {
    std::vector<std::vector<int64_t>> next;
    for (int64_t token : last) next.push_back({token});
    last = pass(continuation_batch(next, position, prompts));
    for (int64_t& p : position) ++p;
    growing.take(last, options);
  }
  return growing.results;
}

}  // namespace mm::model
