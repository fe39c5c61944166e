#include "lib/model/generate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/base/random.h"
#include "lib/model/beam_search.h"
#include "lib/model/cross_entropy.h"
#include "lib/model/decoder_pass.h"
#include "lib/model/patch_layout.h"

namespace mm::model {
namespace {

/// Samples that still grow: row r of the pass is sample `of[r]`.
struct Growing {
  std::vector<std::vector<int64_t>> results;
  std::vector<int64_t> of;
};

/// Draws of sample i: token j is at index j.
Philox draws_of(const GenerateOptions& options, int64_t sample) {
  const auto i = static_cast<size_t>(sample);
  const uint64_t id = options.sample_ids.empty() ? i : options.sample_ids.at(i);
  return Philox(options.seed, "generate").child(id);
}

/// One token for each row; rows that go on, and their tokens.
struct Taken {
  std::vector<int64_t> rows, tokens;
};

Taken take(const at::Tensor& logits, Growing& growing, const GenerateOptions& options) {
  const at::Tensor wide = logits.to(at::kFloat).contiguous();
  const int64_t vocab = wide.size(1);
  Taken taken;
  std::vector<int64_t> of;
  for (int64_t row = 0; row < wide.size(0); ++row) {
    const int64_t sample = growing.of[row];
    std::vector<int64_t>& result = growing.results[sample];
    float* values = wide[row].data_ptr<float>();
    for (const int64_t token : options.banned_tokens)
      if (token >= 0 && token < vocab) values[token] = -std::numeric_limits<float>::infinity();
    const double uniform =
        options.sampling.temperature > 0 ? draws_of(options, sample).uniform(result.size()) : 0.0;
    const int64_t token =
        choose_token({values, static_cast<size_t>(vocab)}, options.sampling, uniform);
    if (std::ranges::find(options.stop_tokens, token) != options.stop_tokens.end()) continue;
    result.push_back(token);
    if (static_cast<int64_t>(result.size()) >= options.max_new_tokens) continue;
    taken.rows.push_back(row);
    taken.tokens.push_back(token);
    of.push_back(sample);
  }
  growing.of = std::move(of);
  return taken;
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

std::vector<std::vector<int64_t>> generate(const Model& model, const ParamView& params,
                                           const Batch& prompts, const GenerateOptions& options) {
  const auto samples = static_cast<int64_t>(prompts.cu_seqlens.size()) - 1;
  Growing growing{std::vector<std::vector<int64_t>>(samples), std::vector<int64_t>(samples)};
  if (options.max_new_tokens <= 0 || samples == 0) return growing.results;
  DecoderPass pass(model, params, prompts, options.max_new_tokens);
  if (options.beams > 1) return beam_search(pass, samples, options);
  std::iota(growing.of.begin(), growing.of.end(), int64_t{0});
  Taken taken = take(pass.start(), growing, options);
  while (!taken.rows.empty()) {
    if (taken.rows.size() < static_cast<size_t>(pass.rows())) pass.select(taken.rows);
    taken = take(pass.next(taken.tokens), growing, options);
  }
  return growing.results;
}

}  // namespace mm::model
