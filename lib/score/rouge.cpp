#include "lib/score/rouge.h"

#include <algorithm>

namespace mm::score {
namespace {

constexpr double kBeta = 1.2;

size_t common_subsequence(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<size_t> row(b.size() + 1, 0);
  for (const std::string& word : a) {
    size_t diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = word == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

double f_score(const CaptionCase& one) {
  const auto candidate = words_of(one.candidate);
  double precision = 0, recall = 0;
  for (const std::string& text : one.references) {
    const auto reference = words_of(text);
    if (candidate.empty() || reference.empty()) continue;
    const auto common = static_cast<double>(common_subsequence(candidate, reference));
    precision = std::max(precision, common / static_cast<double>(candidate.size()));
    recall = std::max(recall, common / static_cast<double>(reference.size()));
  }
  if (precision == 0 || recall == 0) return 0;
  constexpr double kSquare = kBeta * kBeta;
  return (1 + kSquare) * precision * recall / (recall + kSquare * precision);
}

}  // namespace

RougeL rouge_l(std::span<const CaptionCase> cases) {
  check_cases(cases);
  RougeL result;
  for (const CaptionCase& one : cases) {
    result.per_picture.push_back(f_score(one));
    result.mean += result.per_picture.back() / static_cast<double>(cases.size());
  }
  return result;
}

}  // namespace mm::score
