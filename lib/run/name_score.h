#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mm::run {

/// Words of a short caption: blanks separate, colons and commas are dropped, ASCII letters are
/// lowered.
std::vector<std::string> caption_words(std::string_view caption);

/// Whether both captions have the same words in the same order.
bool exact_match(std::string_view truth, std::string_view guess);

/// F1 of the two multisets of words (as SQuAD scores answers, Rajpurkar et al. 2016, section 6.1);
/// 0 if either is empty.
double word_f1(std::string_view truth, std::string_view guess);

/// Rank (from 0) of `truth` among `scores`, best first; ties go against it. O(n).
size_t rank_of(std::span<const double> scores, size_t truth);

/// Means over samples, as fractions.
struct NameScore {
  size_t samples = 0;
  double exact = 0, f1 = 0, recall_1 = 0, recall_5 = 0, recall_10 = 0;
};

/// One sample's outcome.
struct NamedPicture {
  std::string truth, guess;
  size_t rank = 0;  ///< of the true name among all candidates
};
NameScore score_names(std::span<const NamedPicture> outcomes);

}  // namespace mm::run
