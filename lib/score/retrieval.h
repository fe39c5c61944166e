#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace mm::score {

/// Ranks of the right answers and what is said about them.
struct Retrieval {
  /// From 0: entries that score higher than the right one, or are not a number, or all where the
  /// right one is none.
  std::vector<size_t> ranks;
  double recall_1 = 0, recall_5 = 0, recall_10 = 0;  ///< fractions
  double median_rank = 0, mean_rank = 0;             ///< from 1
};

/// `similarity`: row-major [pictures, pictures * captions_per_picture]; picture i's captions stand
/// at columns i * captions_per_picture onward. Ties count for the right answer.
struct SimilarityTable {
  std::span<const double> similarity;
  size_t pictures = 0, captions_per_picture = 1;
};

/// Captions ranked for each picture; the best-ranked of its own counts. Throws DataError when the
/// table has another size than it says.
Retrieval picture_to_text(const SimilarityTable& table);
/// Pictures ranked for each caption. Throws likewise.
Retrieval text_to_picture(const SimilarityTable& table);

}  // namespace mm::score
