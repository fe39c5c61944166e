#include "lib/model/beam_search.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mm::model {
namespace {

struct Hypothesis {
  std::vector<int64_t> tokens;
  double score = 0;  ///< running: sum of log-probabilities; finished: after the length penalty
};

/// A running hypothesis of a sample, and the row of the pass that it continues.
struct Beam {
  Hypothesis hypothesis;
  int64_t row = 0;
};

class SampleBeams {
 public:
  explicit SampleBeams(const GenerateOptions& options) : options_(options) {}

  /// Extends the running beams by one token. `scores` [running * vocab]: log-probabilities of the
  /// next token, one row a beam.
  void extend(std::span<const double> scores, int64_t vocab) {
    std::vector<double> sums(scores.begin(), scores.end());
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += beams[i / static_cast<size_t>(vocab)].hypothesis.score;
    ++length_;
    std::vector<Beam> next;
    int64_t rank = 0;
    for (const int64_t id : best_tokens(sums, 2 * options_.beams)) {
      const Beam& from = beams[id / vocab];
      const int64_t token = id % vocab;
      const bool stops =
          std::ranges::find(options_.stop_tokens, token) != options_.stop_tokens.end();
      if (stops && rank < options_.beams) {
        finish({from.hypothesis.tokens, sums[id]});
      } else if (!stops && static_cast<int64_t>(next.size()) < options_.beams) {
        next.push_back({{from.hypothesis.tokens, sums[id]}, from.row});
        next.back().hypothesis.tokens.push_back(token);
      }
      ++rank;
    }
    beams = std::move(next);
  }

  bool done() const {
    if (length_ >= options_.max_new_tokens || beams.empty()) return true;
    if (static_cast<int64_t>(finished_.size()) < options_.beams) return false;
    // No running beam can beat the worst that ended.
    return finished_.back().score >= penalised(beams.front().hypothesis.score);
  }

  std::vector<int64_t> best() {
    for (const Beam& beam : beams) finish(beam.hypothesis);
    return finished_.empty() ? std::vector<int64_t>{} : finished_.front().tokens;
  }

  std::vector<Beam> beams;

 private:
  double penalised(double sum) const {
    return sum / std::pow(static_cast<double>(length_), options_.length_penalty);
  }
  /// Best first; only as many as there are beams.
  void finish(Hypothesis hypothesis) {
    hypothesis.score = penalised(hypothesis.score);
    const auto at =
        std::ranges::upper_bound(finished_, hypothesis.score, std::greater<>(), &Hypothesis::score);
    finished_.insert(at, std::move(hypothesis));
    if (static_cast<int64_t>(finished_.size()) > options_.beams) finished_.pop_back();
  }

  const GenerateOptions& options_;
  std::vector<Hypothesis> finished_;
  int64_t length_ = 0;
};

at::Tensor log_probabilities(at::Tensor logits, const std::vector<int64_t>& banned) {
  at::Tensor scores = at::log_softmax(logits.to(at::kFloat), 1).to(at::kDouble);
  for (const int64_t token : banned) {
    if (token >= 0 && token < scores.size(1))
      scores.select(1, token).fill_(-std::numeric_limits<double>::infinity());
  }
  return scores.contiguous();
}

}  // namespace

std::vector<std::vector<int64_t>> beam_search(DecoderPass& pass, int64_t samples,
                                              const GenerateOptions& options) {
  std::vector<SampleBeams> all(samples, SampleBeams(options));
  std::vector<size_t> growing(samples);
  std::iota(growing.begin(), growing.end(), size_t{0});
  for (size_t i = 0; i < all.size(); ++i) all[i].beams = {{{}, static_cast<int64_t>(i)}};
  at::Tensor scores = log_probabilities(pass.start(), options.banned_tokens);
  while (true) {
    const int64_t vocab = scores.size(1);
    const double* row = scores.const_data_ptr<double>();
    std::vector<int64_t> rows, tokens;
    std::vector<size_t> left;
    for (const size_t i : growing) {
      const size_t count = all[i].beams.size() * static_cast<size_t>(vocab);
      all[i].extend({row, count}, vocab);
      row += count;
      if (all[i].done()) continue;
      left.push_back(i);
      for (Beam& beam : all[i].beams) {
        rows.push_back(beam.row);
        tokens.push_back(beam.hypothesis.tokens.back());
        beam.row = static_cast<int64_t>(rows.size()) - 1;
      }
    }
    growing = std::move(left);
    if (growing.empty()) break;
    pass.select(rows);
    scores = log_probabilities(pass.next(tokens), options.banned_tokens);
  }
  std::vector<std::vector<int64_t>> results;
  for (SampleBeams& sample : all) results.push_back(sample.best());
  return results;
}

}  // namespace mm::model
