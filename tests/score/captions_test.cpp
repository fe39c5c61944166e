#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/score/bleu.h"
#include "lib/score/cider.h"
#include "lib/score/rouge.h"

using namespace mm::score;

namespace {

const std::vector<CaptionCase> kCases = {
    {"a man rides a red bicycle", {"a man rides a red bicycle", "someone cycles"}},
    {"the the the the", {"the cat is on the mat"}},
    {"", {"a dog"}}};

}  // namespace

TEST_CASE("words_of: runs of blanks count as one, nothing gives nothing") {
  CHECK(words_of("  a  b ") == std::vector<std::string>{"a", "b"});
  CHECK(words_of("   ").empty());
}

TEST_CASE("count_ngrams: every window counts, texts shorter than n have none") {
  const auto words = words_of("a b a b");
  CHECK(count_ngrams(words, 2) == Counts{{"a b", 2}, {"b a", 1}});
  CHECK(count_ngrams(words, 5).empty());
}

TEST_CASE("bleu: hits are clipped to what one reference has, and the shorter candidate pays") {
  const Bleu all = bleu(kCases);
  CHECK(all.hits[0] == 6 + 2);  // "the" stands twice in the mat's reference
  CHECK(all.totals[0] == 6 + 4);
  CHECK(all.candidate_length == 10);
  CHECK(all.reference_length == 6 + 6 + 2);
  CHECK(all.brevity_penalty == doctest::Approx(std::exp(1 - 1.4)));
}

TEST_CASE("bleu: a perfect caption scores 1, one without a common word 0, an empty one 0") {
  CHECK(bleu(std::span(kCases).first(1)).score[3] == doctest::Approx(1));
  CHECK(bleu(std::vector<CaptionCase>{{"x y z w", {"a b c d"}}}).score[0] == 0);
  CHECK(bleu(std::span(kCases).last(1)).score[0] == 0);
}

TEST_CASE("bleu: of two references equally near, the shorter gives the length") {
  const std::vector<CaptionCase> cases = {{"a b c", {"a b c d", "a b"}}};
  CHECK(bleu(cases).reference_length == 2);
}

TEST_CASE(
    "cider: ten for the only right caption of two, nothing where every picture has the words") {
  const std::vector<CaptionCase> cases = {{"a b c d e", {"a b c d e"}},
                                          {"v w x y z", {"v w x y z"}}};
  CHECK(cider(cases, CiderKind::kCider).mean == doctest::Approx(10));
  CHECK(cider(cases, CiderKind::kCiderD).per_picture[1] == doctest::Approx(10));
  const std::vector<CaptionCase> same = {{"a b c d e", {"a b c d e"}},
                                         {"a b c d e", {"a b c d e"}}};
  CHECK(cider(same, CiderKind::kCider).mean == 0);
}

TEST_CASE("cider: D punishes a candidate that repeats, the plain form does not") {
  const std::vector<CaptionCase> cases = {{"a b c d a b c d", {"a b c d"}}, {"v w", {"v w"}}};
  CHECK(cider(cases, CiderKind::kCiderD).per_picture[0] <
        cider(cases, CiderKind::kCider).per_picture[0]);
}

TEST_CASE("rouge_l: the longest common subsequence need not be contiguous") {
  const std::vector<CaptionCase> cases = {{"a x b y", {"a b"}}, {"", {"a"}}};
  const double precision = 0.5, recall = 1, square = 1.44;
  const RougeL got = rouge_l(cases);
  CHECK(got.per_picture[0] ==
        doctest::Approx((1 + square) * precision * recall / (recall + square * precision)));
  CHECK(got.per_picture[1] == 0);
}

TEST_CASE("captions without a reference, or no captions, are refused") {
  const std::vector<CaptionCase> cases = {{"a", {"a"}}, {"lonely", {}}};
  CHECK_THROWS_WITH_AS(bleu(cases), doctest::Contains("lonely"), mm::DataError);
  CHECK_THROWS_AS(cider({}, CiderKind::kCider), mm::DataError);
}
