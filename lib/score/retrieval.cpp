#include "lib/score/retrieval.h"

#include <algorithm>

#include "lib/base/error.h"

namespace mm::score {
namespace {

void check(const SimilarityTable& table) {
  const size_t captions = table.pictures * table.captions_per_picture;
  if (table.pictures == 0 || table.similarity.size() / table.pictures != captions ||
      table.similarity.size() % table.pictures != 0)
    throw DataError("similarity table of {} numbers; expected {} pictures times {} captions",
                    table.similarity.size(), table.pictures, captions);
}

Retrieval summed_up(std::vector<size_t> ranks) {
  Retrieval result{.ranks = ranks};
  const auto count = static_cast<double>(ranks.size());
  for (const size_t rank : ranks) {
    result.recall_1 += rank < 1 ? 1 / count : 0;
    result.recall_5 += rank < 5 ? 1 / count : 0;
    result.recall_10 += rank < 10 ? 1 / count : 0;
    result.mean_rank += static_cast<double>(rank + 1) / count;
  }
  std::ranges::sort(ranks);
  const size_t half = ranks.size() / 2;
  result.median_rank = ranks.size() % 2 == 1
                           ? static_cast<double>(ranks[half] + 1)
                           : static_cast<double>(ranks[half - 1] + ranks[half]) / 2 + 1;
  return result;
}

}  // namespace

Retrieval picture_to_text(const SimilarityTable& table) {
  check(table);
  const size_t captions = table.pictures * table.captions_per_picture;
  std::vector<size_t> ranks;
  for (size_t i = 0; i < table.pictures; ++i) {
    const auto row = table.similarity.subspan(i * captions, captions);
    const auto own = row.subspan(i * table.captions_per_picture, table.captions_per_picture);
    const double best = *std::ranges::max_element(own);
    ranks.push_back(
        static_cast<size_t>(std::ranges::count_if(row, [best](double s) { return !(s <= best); })));
  }
  return summed_up(std::move(ranks));
}

Retrieval text_to_picture(const SimilarityTable& table) {
  check(table);
  const size_t captions = table.pictures * table.captions_per_picture;
  std::vector<size_t> ranks;
  for (size_t j = 0; j < captions; ++j) {
    const double own = table.similarity[j / table.captions_per_picture * captions + j];
    size_t rank = 0;
    for (size_t i = 0; i < table.pictures; ++i)
      rank += !(table.similarity[i * captions + j] <= own);
    ranks.push_back(rank);
  }
  return summed_up(std::move(ranks));
}

}  // namespace mm::score
