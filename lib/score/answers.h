#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mm::score {

/// What a free answer says to a yes/no question, by POPE's rule (Li et al. 2023): only what
/// precedes the first full stop counts, commas are dropped, the words no, No and not mean no, all
/// else yes.
bool says_yes(std::string_view answer);

struct YesNoCase {
  std::string answer;
  bool truth = false;
};

/// Binary scores with yes as the positive class; fractions, 0 where there is nothing to count.
struct YesNo {
  int64_t true_positive = 0, false_positive = 0, false_negative = 0, true_negative = 0;
  double accuracy = 0, precision = 0, recall = 0, f1 = 0, yes_ratio = 0;
};
YesNo score_yes_no(std::span<const YesNoCase> cases);

/// The number an answer gives: its first word, in lower case and without .,;:!? at its ends, that
/// is digits or a word from zero to twelve; nothing if there is none (or it exceeds 18 digits).
std::optional<int64_t> number_in(std::string_view answer);

struct CountCase {
  std::string answer;
  int64_t truth = 0;
};

/// Answers without a number are wrong and left out of the mean error.
struct Counting {
  double accuracy = 0, within_one = 0, mean_absolute_error = 0;
  int64_t unparsed = 0;
};
Counting score_counts(std::span<const CountCase> cases);

/// The relation an answer names: the first of left, right, above, below (or over, on top, under,
/// beneath) as a word of it, in lower case; nothing if there is none.
enum class Relation { kLeft, kRight, kAbove, kBelow };
std::optional<Relation> relation_in(std::string_view answer);

struct RelationCase {
  std::string answer;
  Relation truth = Relation::kLeft;
};

struct Spatial {
  double accuracy = 0;
  int64_t unparsed = 0;  ///< counted as wrong
};
Spatial score_relations(std::span<const RelationCase> cases);

}  // namespace mm::score
