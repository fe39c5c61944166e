#include "lib/score/ngrams.h"

#include "lib/base/error.h"

namespace mm::score {

void check_cases(std::span<const CaptionCase> cases) {
  if (cases.empty()) throw DataError("no captions to score; expected at least one");
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].references.empty())
      throw DataError("caption {} (\"{}\") has no reference to be compared with", i + 1,
                      cases[i].candidate);
  }
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (size_t begin = 0; (begin = text.find_first_not_of(' ', begin)) != std::string_view::npos;) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

Counts count_ngrams(std::span<const std::string> words, size_t n) {
  Counts counts;
  for (size_t i = 0; i + n <= words.size(); ++i) {
    std::string gram = words[i];
    for (size_t k = 1; k < n; ++k) gram += ' ' + words[i + k];
    ++counts[gram];
  }
  return counts;
}

NgramCounts count_all_ngrams(std::span<const std::string> words) {
  NgramCounts counts;
  for (size_t n = 1; n <= kMaxOrder; ++n) counts[n - 1] = count_ngrams(words, n);
  return counts;
}

}  // namespace mm::score
