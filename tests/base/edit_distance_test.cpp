#include "lib/base/edit_distance.h"

#include <doctest/doctest.h>

#include <vector>

TEST_CASE("edit_distance: insertion, deletion, replacement and swap cost one each") {
  CHECK(mm::edit_distance("", "") == 0);
  CHECK(mm::edit_distance("abc", "") == 3);
  CHECK(mm::edit_distance("steps", "steps") == 0);
  CHECK(mm::edit_distance("stpes", "steps") == 1);
  CHECK(mm::edit_distance("step", "steps") == 1);
  CHECK(mm::edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("nearest_word: the closest within a third of the length, the first of equals") {
  const std::vector<std::string> words{"steps", "stops", "learning_rate", "lr"};
  CHECK(mm::nearest_word("stps", words) == "steps");
  CHECK(mm::nearest_word("stop", words) == "stops");
  CHECK(mm::nearest_word("learning-rates", words) == "learning_rate");
  CHECK(mm::nearest_word("rl", words) == "lr");
  CHECK_FALSE(mm::nearest_word("momentum", words).has_value());
  CHECK_FALSE(mm::nearest_word(std::string(100'000, 'x'), words).has_value());
}

TEST_CASE("suggestion: the nearest, else the known words, at most twelve") {
  CHECK(mm::suggestion("x", {}).empty());
  const std::vector<std::string> few{"alpha", "beta"};
  CHECK(mm::suggestion("alpa", few) == "; did you mean \"alpha\"?");
  CHECK(mm::suggestion("qqqqqq", few) == "; known: alpha, beta");
  const std::vector<std::string> many(13, "long_word_here");
  CHECK(mm::suggestion("q", many).ends_with(", ..."));
}
