#include "lib/run/name_score.h"

#include <doctest/doctest.h>

#include <limits>

using namespace mm::run;

TEST_CASE("caption_words: colons, commas and capitals do not count") {
  CHECK(caption_words(" Man: dark skin tone, beard ") ==
        std::vector<std::string>{"man", "dark", "skin", "tone", "beard"});
  CHECK(caption_words("").empty());
}

TEST_CASE("exact_match: same words in the same order") {
  CHECK(exact_match("man: dark skin tone", "man dark  skin tone"));
  CHECK_FALSE(exact_match("man: dark skin tone", "dark skin tone man"));
}

TEST_CASE("word_f1: by hand") {
  CHECK(word_f1("red apple", "green apple") == doctest::Approx(0.5));
  CHECK(word_f1("the the cat", "the cat") == doctest::Approx(0.8));
  CHECK(word_f1("cat", "") == 0);
  CHECK(word_f1("cat", "cat") == 1);
}

TEST_CASE("rank_of: ties and not-a-number go against the true name") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(rank_of(std::vector<double>{3, 2, 1}, 0) == 0);
  CHECK(rank_of(std::vector<double>{3, 2, 1}, 2) == 2);
  CHECK(rank_of(std::vector<double>{1, 1, 1}, 1) == 2);
  CHECK(rank_of(std::vector<double>{nan, 1, 0}, 1) == 1);
}

TEST_CASE("score_names: means over samples") {
  const std::vector<NamedPicture> outcomes{{"a b", "a b", 0}, {"c d", "c x", 7}};
  const NameScore score = score_names(outcomes);
  CHECK(score.exact == doctest::Approx(0.5));
  CHECK(score.f1 == doctest::Approx(0.75));
  CHECK(score.recall_1 == doctest::Approx(0.5));
  CHECK(score.recall_10 == doctest::Approx(1.0));
  CHECK(score_names({}).samples == 0);
}
