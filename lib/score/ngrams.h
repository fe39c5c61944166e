#pragma once
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mm::score {

/// Longest n-gram that BLEU and CIDEr look at.
constexpr size_t kMaxOrder = 4;

/// What a picture's caption is compared with. All texts of this module are lower case and already
/// split by blanks, as COCO's tokenizer leaves them.
struct CaptionCase {
  std::string candidate;
  std::vector<std::string> references;  ///< at least one
};

/// Throws DataError naming the case that has no reference, or when there is no case at all.
void check_cases(std::span<const CaptionCase> cases);

/// `text` split at blanks; runs of blanks count as one.
std::vector<std::string> words_of(std::string_view text);

/// Occurrences of each n-gram, its words joined by one blank. Ordered, so that sums over it do not
/// depend on the standard library's hashing.
using Counts = std::map<std::string, int64_t>;
Counts count_ngrams(std::span<const std::string> words, size_t n);

/// Counts of n = 1 to kMaxOrder; element n - 1 holds order n.
using NgramCounts = std::array<Counts, kMaxOrder>;
NgramCounts count_all_ngrams(std::span<const std::string> words);

}  // namespace mm::score
