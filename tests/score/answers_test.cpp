#include "lib/score/answers.h"

#include <doctest/doctest.h>

#include <vector>

using namespace mm::score;

TEST_CASE(
    "says_yes: only before the first full stop, commas dropped, all but no, No and not is yes") {
  CHECK(says_yes("Yes, there is."));
  CHECK(!says_yes("no, I see none"));
  CHECK(!says_yes("There is not a car. Yes."));
  CHECK(says_yes("yes. No doubt"));
  CHECK(says_yes(""));
  CHECK(says_yes("nothing"));
}

TEST_CASE("score_yes_no: counts and ratios; nothing to count gives 0") {
  const YesNo got = score_yes_no(
      std::vector<YesNoCase>{{"yes", true}, {"yes", false}, {"no", true}, {"no", false}});
  CHECK(got.true_positive == 1);
  CHECK(got.false_negative == 1);
  CHECK(got.accuracy == doctest::Approx(0.5));
  CHECK(got.f1 == doctest::Approx(0.5));
  CHECK(score_yes_no({}).f1 == 0);
}

TEST_CASE("number_in: digits or words to twelve, punctuation off, no overflow") {
  CHECK(number_in("There are 3 cups.") == 3);
  CHECK(number_in("I see Twelve, 7 left") == 12);
  CHECK(!number_in("a dozen"));
  CHECK(!number_in("99999999999999999999"));
  CHECK(!number_in("..."));
}

TEST_CASE("score_counts: an answer without a number is wrong and has no error") {
  const Counting got = score_counts(std::vector<CountCase>{{"3", 3}, {"two", 4}, {"many", 5}});
  CHECK(got.accuracy == doctest::Approx(1.0 / 3));
  CHECK(got.mean_absolute_error == doctest::Approx(1));
  CHECK(got.unparsed == 1);
}

TEST_CASE("relations: the first word that names one counts") {
  CHECK(relation_in("The cup is to the LEFT of the plate.") == Relation::kLeft);
  CHECK(relation_in("under, not above") == Relation::kBelow);
  CHECK(!relation_in("leftover food"));
  const Spatial got = score_relations(
      std::vector<RelationCase>{{"on top of it", Relation::kAbove}, {"beside", Relation::kLeft}});
  CHECK(got.accuracy == doctest::Approx(0.5));
  CHECK(got.unparsed == 1);
}
