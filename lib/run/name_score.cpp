#include "lib/run/name_score.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>

namespace mm::run {

std::vector<std::string> caption_words(std::string_view caption) {
  std::string text(caption);
  std::erase_if(text, [](char c) { return c == ':' || c == ','; });
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(c < 128 ? std::tolower(c) : c); });
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

bool exact_match(std::string_view truth, std::string_view guess) {
  return caption_words(truth) == caption_words(guess);
}

double word_f1(std::string_view truth, std::string_view guess) {
  std::vector<std::string> a = caption_words(truth), b = caption_words(guess), common;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common.empty()
             ? 0
             : 2.0 * static_cast<double>(common.size()) / static_cast<double>(a.size() + b.size());
}

size_t rank_of(std::span<const double> scores, size_t truth) {
  size_t rank = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    // Not-a-number counts as better, so that a broken model cannot score.
    if (i != truth && !(scores[i] < scores[truth])) ++rank;
  }
  return rank;
}

NameScore score_names(std::span<const NamedPicture> outcomes) {
  NameScore sum{.samples = outcomes.size()};
  if (outcomes.empty()) return sum;
  const double weight = 1.0 / static_cast<double>(outcomes.size());
  for (const NamedPicture& o : outcomes) {
    sum.exact += weight * exact_match(o.truth, o.guess);
    sum.f1 += weight * word_f1(o.truth, o.guess);
    sum.recall_1 += weight * (o.rank < 1);
    sum.recall_5 += weight * (o.rank < 5);
    sum.recall_10 += weight * (o.rank < 10);
  }
  return sum;
}

}  // namespace mm::run
