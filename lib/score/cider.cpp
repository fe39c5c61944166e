#include "lib/score/cider.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace mm::score {
namespace {

constexpr double kSigma = 6;
constexpr double kScale = 10;

/// A caption's TF-IDF vector of each order.
struct Vector {
  std::array<std::map<std::string, double>, kMaxOrder> weights;
  std::array<double, kMaxOrder> norm{};
  double length = 0;  ///< bigrams
};

class Weigher {
 public:
  explicit Weigher(std::span<const CaptionCase> cases)
      : log_pictures_(std::log(static_cast<double>(cases.size()))) {
    for (const CaptionCase& one : cases) {
      std::set<std::string> seen;
      for (const std::string& text : one.references) {
        for (const Counts& counts : count_all_ngrams(words_of(text)))
          for (const auto& [gram, count] : counts) seen.insert(gram);
      }
      for (const std::string& gram : seen) ++pictures_with_[gram];
    }
  }

  Vector vector_of(const std::string& text) const {
    Vector vector;
    const NgramCounts counts = count_all_ngrams(words_of(text));
    for (size_t order = 0; order < kMaxOrder; ++order) {
      double squares = 0;
      for (const auto& [gram, count] : counts[order]) {
        const double weight = static_cast<double>(count) * (log_pictures_ - log_frequency(gram));
        vector.weights[order][gram] = weight;
        squares += weight * weight;
        if (order == 1) vector.length += static_cast<double>(count);
      }
      vector.norm[order] = std::sqrt(squares);
    }
    return vector;
  }

 private:
  double log_frequency(const std::string& gram) const {
    const auto found = pictures_with_.find(gram);
    return found == pictures_with_.end() ? 0 : std::log(static_cast<double>(found->second));
  }

  double log_pictures_;
  Counts pictures_with_;
};

double dot(const std::map<std::string, double>& candidate,
           const std::map<std::string, double>& reference, CiderKind kind) {
  double sum = 0;
  for (const auto& [gram, weight] : candidate) {
    const auto found = reference.find(gram);
    if (found == reference.end()) continue;
    const double own = kind == CiderKind::kCiderD ? std::min(weight, found->second) : weight;
    sum += own * found->second;
  }
  return sum;
}

/// Mean over orders.
double similarity(const Vector& candidate, const Vector& reference, CiderKind kind) {
  const double gap = candidate.length - reference.length;
  const double penalty =
      kind == CiderKind::kCiderD ? std::exp(-gap * gap / (2 * kSigma * kSigma)) : 1;
  double sum = 0;
  for (size_t order = 0; order < kMaxOrder; ++order) {
    const double norms = candidate.norm[order] * reference.norm[order];
    if (norms != 0)
      sum += dot(candidate.weights[order], reference.weights[order], kind) / norms * penalty;
  }
  return sum / kMaxOrder;
}

}  // namespace

Cider cider(std::span<const CaptionCase> cases, CiderKind kind) {
  check_cases(cases);
  const Weigher weigher(cases);
  Cider result;
  for (const CaptionCase& one : cases) {
    const Vector candidate = weigher.vector_of(one.candidate);
    double sum = 0;
    for (const std::string& reference : one.references)
      sum += similarity(candidate, weigher.vector_of(reference), kind);
    result.per_picture.push_back(kScale * sum / static_cast<double>(one.references.size()));
    result.mean += result.per_picture.back() / static_cast<double>(cases.size());
  }
  return result;
}

}  // namespace mm::score
