#include "lib/score/bleu.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace mm::score {
namespace {

int64_t nearest_length(int64_t length, const std::vector<std::string>& references) {
  std::pair<int64_t, int64_t> best{std::numeric_limits<int64_t>::max(), 0};  // distance, length
  for (const std::string& reference : references) {
    const auto words = static_cast<int64_t>(words_of(reference).size());
    best = std::min(best, {std::abs(words - length), words});
  }
  return best.second;
}

/// For each n-gram the most that any one reference has of it.
Counts most_of(const std::vector<NgramCounts>& references, size_t order) {
  Counts most;
  for (const NgramCounts& reference : references) {
    for (const auto& [gram, count] : reference[order]) most[gram] = std::max(most[gram], count);
  }
  return most;
}

void add_case(const CaptionCase& one, Bleu& sums) {
  const auto words = words_of(one.candidate);
  const auto length = static_cast<int64_t>(words.size());
  sums.candidate_length += length;
  sums.reference_length += nearest_length(length, one.references);
  std::vector<NgramCounts> references;
  for (const std::string& text : one.references)
    references.push_back(count_all_ngrams(words_of(text)));
  for (size_t order = 0; order < kMaxOrder; ++order) {
    const Counts most = most_of(references, order);
    for (const auto& [gram, count] : count_ngrams(words, order + 1)) {
      sums.totals[order] += count;
      if (const auto found = most.find(gram); found != most.end())
        sums.hits[order] += std::min(count, found->second);
    }
  }
}

}  // namespace

Bleu bleu(std::span<const CaptionCase> cases) {
  check_cases(cases);
  Bleu result;
  for (const CaptionCase& one : cases) add_case(one, result);
  if (result.candidate_length < result.reference_length) {
    result.brevity_penalty = result.candidate_length == 0
                                 ? 0
                                 : std::exp(1 - static_cast<double>(result.reference_length) /
                                                    static_cast<double>(result.candidate_length));
  }
  double log_sum = 0;
  for (size_t order = 0; order < kMaxOrder; ++order) {
    log_sum += std::log(static_cast<double>(result.hits[order]) /
                        static_cast<double>(std::max<int64_t>(result.totals[order], 1)));
    result.score[order] =
        result.brevity_penalty * std::exp(log_sum / static_cast<double>(order + 1));
  }
  return result;
}

}  // namespace mm::score
