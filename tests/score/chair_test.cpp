#include "lib/score/chair.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

using namespace mm::score;

namespace {

const ObjectFinder kFinder({{"dog", {"dog", "puppy"}}, {"hot dog", {"hot dog"}}, {"car", {"car"}}});

}  // namespace

TEST_CASE("mentions: two words before one, left to right, every mention counts") {
  CHECK(kFinder.mentions("a hot dog near a dog and a puppy") ==
        std::vector<std::string>{"hot dog", "dog", "dog"});
  CHECK(kFinder.mentions("").empty());
}

TEST_CASE("chair: hallucinated mentions by mention and by caption, recall over true objects") {
  const std::vector<ChairCase> cases = {{"a dog and a car", {"dog"}}, {"a street", {"car"}}};
  const Chair got = chair(cases, kFinder);
  CHECK(got.hallucinated[0] == std::vector<std::string>{"car"});
  CHECK(got.per_instance == doctest::Approx(0.5));
  CHECK(got.per_sentence == doctest::Approx(0.5));
  CHECK(got.recall == doctest::Approx(0.5));
}

TEST_CASE("chair: nothing mentioned is no hallucination") {
  const Chair got = chair(std::vector<ChairCase>{{"a street", {}}}, kFinder);
  CHECK(got.per_instance == 0);
  CHECK(got.recall == 0);
}

TEST_CASE("a word that names two objects is refused by both names") {
  CHECK_THROWS_WITH_AS(ObjectFinder({{"a", {"x"}}, {"b", {"x"}}}), doctest::Contains("a and b"),
                       mm::DataError);
}
