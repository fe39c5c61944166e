#include "lib/score/retrieval.h"

#include <doctest/doctest.h>

#include <limits>

#include "lib/base/error.h"

using namespace mm::score;

TEST_CASE("retrieval: the best of a picture's captions counts, ties go to the right answer") {
  //                                        own of 0     own of 1
  const std::vector<double> similarity = {0.1, 0.9, 0.9, 0.2,   // picture 0
                                          0.5, 0.3, 0.2, 0.4};  // picture 1
  const SimilarityTable table{.similarity = similarity, .pictures = 2, .captions_per_picture = 2};
  const Retrieval by_picture = picture_to_text(table);
  CHECK(by_picture.ranks == std::vector<size_t>{0, 1});
  CHECK(by_picture.recall_1 == doctest::Approx(0.5));
  CHECK(by_picture.median_rank == doctest::Approx(1.5));
  const Retrieval by_text = text_to_picture(table);
  CHECK(by_text.ranks == std::vector<size_t>{1, 0, 1, 0});
  CHECK(by_text.mean_rank == doctest::Approx(1.5));
  CHECK(by_text.recall_5 == doctest::Approx(1));
}

TEST_CASE("retrieval: a table of another size than it says is refused") {
  const std::vector<double> similarity(7);
  CHECK_THROWS_AS(picture_to_text({.similarity = similarity, .pictures = 2}), mm::DataError);
  CHECK_THROWS_AS(text_to_picture({.similarity = {}, .pictures = 0}), mm::DataError);
}

TEST_CASE("retrieval: a model that says not-a-number finds nothing") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> broken(9, nan), half = {nan, 0.5, 0.1, 0.2, 0.9, nan, 0.3, 0.4, 0.5};
  CHECK(picture_to_text({.similarity = broken, .pictures = 3}).mean_rank == 4);
  CHECK(text_to_picture({.similarity = broken, .pictures = 3}).recall_1 == 0);
  CHECK(picture_to_text({.similarity = half, .pictures = 3}).ranks == std::vector<size_t>{3, 1, 0});
  CHECK(text_to_picture({.similarity = half, .pictures = 3}).ranks == std::vector<size_t>{3, 0, 1});
}
