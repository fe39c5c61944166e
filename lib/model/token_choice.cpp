#include "lib/model/token_choice.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/base/error.h"

namespace mm::model {
namespace {

/// Ids ordered by descending score; the first `count` of them.
template <typename T>
std::vector<int64_t> ordered(std::span<const T> scores, size_t count) {
  std::vector<int64_t> ids(scores.size());
  std::iota(ids.begin(), ids.end(), int64_t{0});
  const auto better = [&](int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  count = std::min(count, ids.size());
  std::partial_sort(ids.begin(), ids.begin() + static_cast<int64_t>(count), ids.end(), better);
  ids.resize(count);
  return ids;
}

}  // namespace

std::vector<int64_t> best_tokens(std::span<const double> scores, int64_t count) {
  return ordered(scores, static_cast<size_t>(count));
}

int64_t choose_token(std::span<const float> logits, const Sampling& sampling, double uniform) {
  const auto best = std::ranges::max_element(logits);
  MM_CHECK(best != logits.end() && std::isfinite(*best), "no token has a finite logit");
  if (sampling.temperature <= 0) return best - logits.begin();
  const size_t most = sampling.top_k > 0 ? static_cast<size_t>(sampling.top_k) : logits.size();
  const std::vector<int64_t> ids = ordered(logits, most);
  std::vector<double> weights;
  double sum = 0;
  for (const int64_t id : ids) {
    weights.push_back(std::exp((static_cast<double>(logits[id]) - *best) / sampling.temperature));
    sum += weights.back();
  }
  // The token that makes the sum reach top_p stays in.
  size_t kept = 0;
  double inside = 0;
  while (kept < ids.size() && (kept == 0 || inside < sampling.top_p * sum))
    inside += weights[kept++];
  double left = uniform * inside;
  for (size_t i = 0; i < kept; ++i) {
    left -= weights[i];
    if (left < 0) return ids[i];
  }
  // Rounding: the last one that can come.
  while (kept > 1 && weights[kept - 1] == 0) --kept;
  return ids[kept - 1];
}

}  // namespace mm::model
