#pragma once
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mm::score {

/// A caption and the objects that the picture really shows.
struct ChairCase {
  std::string caption;          ///< lower case, split by blanks
  std::set<std::string> truth;  ///< object names
};

/// Object hallucination in captions (Rohrbach et al. 2018).
struct Chair {
  std::vector<std::vector<std::string>> mentions, hallucinated;  ///< objects, per caption
  double per_instance = 0;  ///< CHAIR_i: hallucinated mentions over all mentions
  double per_sentence = 0;  ///< CHAIR_s: captions with any over all captions
  double recall = 0;        ///< true objects that are mentioned
};

/// Finds objects by their synonyms, one or two words each.
class ObjectFinder {
 public:
  /// `synonyms`: object to the words that name it. Throws DataError when two objects share one.
  explicit ObjectFinder(const std::map<std::string, std::vector<std::string>>& synonyms);

  /// Objects in the order of their mention: left to right, two words before one; every mention
  /// counts.
  std::vector<std::string> mentions(std::string_view caption) const;

 private:
  std::map<std::string, std::string> object_of_;
};

/// Sums over `cases`; a ratio without anything to count is 0.
Chair chair(std::span<const ChairCase> cases, const ObjectFinder& finder);

}  // namespace mm::score
