#include "lib/score/answers.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "lib/score/ngrams.h"

namespace mm::score {
namespace {

constexpr std::array<const char*, 13> kNumbers = {"zero", "one",    "two",   "three", "four",
                                                  "five", "six",    "seven", "eight", "nine",
                                                  "ten",  "eleven", "twelve"};
constexpr size_t kMostDigits = 18;  // fits in 64 bits

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Words at any white space, ASCII lower case, without punctuation at their ends.
std::vector<std::string> plain_words(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  }
  std::vector<std::string> words;
  for (const std::string& word : words_of(lowered)) {
    const size_t begin = word.find_first_not_of(".,;:!?");
    if (begin == std::string::npos) continue;
    words.push_back(word.substr(begin, word.find_last_not_of(".,;:!?") - begin + 1));
  }
  return words;
}

}  // namespace

bool says_yes(std::string_view answer) {
  std::string first(answer.substr(0, answer.find('.')));
  std::erase(first, ',');
  return std::ranges::none_of(words_of(first), [](const std::string& word) {
    return word == "No" || word == "no" || word == "not";
  });
}

YesNo score_yes_no(std::span<const YesNoCase> cases) {
  YesNo s;
  for (const YesNoCase& one : cases) {
    const bool yes = says_yes(one.answer);
    ++(yes ? (one.truth ? s.true_positive : s.false_positive)
           : (one.truth ? s.false_negative : s.true_negative));
  }
  const auto count = static_cast<int64_t>(cases.size());
  s.accuracy = ratio(s.true_positive + s.true_negative, count);
  s.precision = ratio(s.true_positive, s.true_positive + s.false_positive);
  s.recall = ratio(s.true_positive, s.true_positive + s.false_negative);
  if (s.precision + s.recall > 0) s.f1 = 2 * s.precision * s.recall / (s.precision + s.recall);
  s.yes_ratio = ratio(s.true_positive + s.false_positive, count);
  return s;
}

std::optional<int64_t> number_in(std::string_view answer) {
  for (const std::string& word : plain_words(answer)) {
    if (std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; })) {
      if (word.size() > kMostDigits) return std::nullopt;
      return std::stoll(word);
    }
    const auto* named = std::ranges::find(kNumbers, word);
    if (named != kNumbers.end()) return named - kNumbers.begin();
  }
  return std::nullopt;
}

Counting score_counts(std::span<const CountCase> cases) {
  Counting s;
  int64_t right = 0, near = 0, parsed = 0, error = 0;
  for (const CountCase& one : cases) {
    const auto number = number_in(one.answer);
    if (!number) {
      ++s.unparsed;
      continue;
    }
    const int64_t gap = std::abs(*number - one.truth);
    ++parsed;
    error += gap;
    right += gap == 0;
    near += gap <= 1;
  }
  s.accuracy = ratio(right, static_cast<int64_t>(cases.size()));
  s.within_one = ratio(near, static_cast<int64_t>(cases.size()));
  s.mean_absolute_error = ratio(error, parsed);
  return s;
}

std::optional<Relation> relation_in(std::string_view answer) {
  static constexpr std::array<std::pair<const char*, Relation>, 8> kWords = {{
      {"left", Relation::kLeft},
      {"right", Relation::kRight},
      {"above", Relation::kAbove},
      {"over", Relation::kAbove},
      {"top", Relation::kAbove},
      {"below", Relation::kBelow},
      {"under", Relation::kBelow},
      {"beneath", Relation::kBelow},
  }};
  for (const std::string& word : plain_words(answer)) {
    for (const auto& [name, relation] : kWords)
      if (word == name) return relation;
  }
  return std::nullopt;
}

Spatial score_relations(std::span<const RelationCase> cases) {
  Spatial s;
  int64_t right = 0;
  for (const RelationCase& one : cases) {
    const auto relation = relation_in(one.answer);
    s.unparsed += relation ? 0 : 1;
    right += relation == one.truth;
  }
  s.accuracy = ratio(right, static_cast<int64_t>(cases.size()));
  return s;
}

}  // namespace mm::score
