#include <algorithm>
#include <cmath>

#include "lib/score/answers.h"
#include "lib/score/bleu.h"
#include "lib/score/chair.h"
#include "lib/score/cider.h"
#include "lib/score/retrieval.h"
#include "lib/score/rouge.h"
#include "tools/mm_oracle/kinds.h"

namespace mm::oracle {
namespace {

constexpr double kTolerance = 1e-9;

/// Compares numbers with the folder's, absolutely.
class Comparer {
 public:
  Comparer(Folder& folder, Report& report) : folder_(folder), report_(report) {}

  void number(const std::string& path, double got) {
    report_.number(path, std::abs(got - folder_.number(path)), kTolerance, "abs");
  }
  template <typename Numbers>
  void numbers(const std::string& path, const Numbers& got) {
    const auto want = folder_.numbers(path);
    double worst = want.size() == std::size(got) ? 0 : INFINITY;
    for (size_t i = 0; i < std::min(want.size(), std::size(got)); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]));
    report_.number(path, worst, kTolerance, "abs");
  }
  void exact(const std::string& path, const Json& got) {
    report_.exact(path, folder_.take(path) == got, got.dump());
  }

 private:
  Folder& folder_;
  Report& report_;
};

std::vector<score::CaptionCase> caption_cases(Folder& folder, const std::string& candidates) {
  const Json texts = folder.take(candidates), references = folder.take("references");
  std::vector<score::CaptionCase> cases;
  for (size_t i = 0; i < texts.size(); ++i)
    cases.push_back(
        {texts[i].get<std::string>(), references.at(i).get<std::vector<std::string>>()});
  return cases;
}

void check_bleu(Comparer& compare, const std::string& at, const score::Bleu& got) {
  compare.numbers(at + "/bleu1..4", got.score);
  compare.numbers(at + "/hits", got.hits);
  compare.numbers(at + "/totals", got.totals);
  compare.number(at + "/candidate_length", static_cast<double>(got.candidate_length));
  compare.number(at + "/reference_length", static_cast<double>(got.reference_length));
  compare.number(at + "/brevity_penalty", got.brevity_penalty);
}

template <typename Score>
void check_means(Comparer& compare, const std::string& at, const Score& got) {
  compare.number(at + "/mean", got.mean);
  compare.numbers(at + "/per_picture", got.per_picture);
}

void check_captions(Folder& folder, Comparer& compare) {
  folder.set_aside({"bleu/library_coco_caption", "bleu/library_sacrebleu_no_smoothing_percent",
                    "bleu/library_sacrebleu_default_percent", "cider_d/library_coco_caption",
                    "rouge_l/beta"});
  const auto cases = caption_cases(folder, "candidates");
  check_bleu(compare, "bleu", score::bleu(cases));
  const auto shortened = caption_cases(folder, "bleu_short_candidates/candidates");
  check_bleu(compare, "bleu_short_candidates", score::bleu(shortened));
  check_means(compare, "cider", score::cider(cases, score::CiderKind::kCider));
  check_means(compare, "cider_d", score::cider(cases, score::CiderKind::kCiderD));
  check_means(compare, "rouge_l", score::rouge_l(cases));
}

void check_ranks(Comparer& compare, const std::string& at, const score::Retrieval& got) {
  compare.numbers(at + "/ranks_from_0", got.ranks);
  compare.number(at + "/recall@1", got.recall_1);
  compare.number(at + "/recall@5", got.recall_5);
  compare.number(at + "/recall@10", got.recall_10);
  compare.number(at + "/median_rank_from_1", got.median_rank);
  compare.number(at + "/mean_rank_from_1", got.mean_rank);
}

void check_retrieval(Folder& folder, Comparer& compare) {
  const auto rows = folder.take("retrieval/similarity").get<std::vector<std::vector<double>>>();
  std::vector<double> similarity;
  for (const auto& row : rows) similarity.insert(similarity.end(), row.begin(), row.end());
  const score::SimilarityTable table{
      .similarity = similarity,
      .pictures = rows.size(),
      .captions_per_picture = static_cast<size_t>(folder.number("retrieval/captions_per_picture"))};
  check_ranks(compare, "retrieval/picture_to_text", score::picture_to_text(table));
  check_ranks(compare, "retrieval/text_to_picture", score::text_to_picture(table));
}

void check_chair(Folder& folder, Comparer& compare) {
  const score::ObjectFinder finder(
      folder.take("chair/synonyms").get<std::map<std::string, std::vector<std::string>>>());
  std::vector<score::ChairCase> cases;
  for (const Json& one : folder.take("chair/cases"))
    cases.push_back({one.at(0).get<std::string>(), one.at(1).get<std::set<std::string>>()});
  const score::Chair got = score::chair(cases, finder);
  compare.exact("chair/mentions", got.mentions);
  compare.exact("chair/hallucinated", got.hallucinated);
  compare.number("chair/CHAIR_i", got.per_instance);
  compare.number("chair/CHAIR_s", got.per_sentence);
  compare.number("chair/recall", got.recall);
}

void check_yes_no(Folder& folder, Comparer& compare) {
  std::vector<score::YesNoCase> cases;
  Json parsed = Json::array();
  for (const Json& one : folder.take("pope/cases")) {
    cases.push_back({one.at(0).get<std::string>(), one.at(1) == "yes"});
    parsed.push_back(score::says_yes(cases.back().answer) ? "yes" : "no");
  }
  compare.exact("pope/parsed", parsed);
  const score::YesNo got = score::score_yes_no(cases);
  compare.number("pope/tp", static_cast<double>(got.true_positive));
  compare.number("pope/fp", static_cast<double>(got.false_positive));
  compare.number("pope/fn", static_cast<double>(got.false_negative));
  compare.number("pope/tn", static_cast<double>(got.true_negative));
  compare.number("pope/accuracy", got.accuracy);
  compare.number("pope/precision", got.precision);
  compare.number("pope/recall", got.recall);
  compare.number("pope/f1", got.f1);
  compare.number("pope/yes_ratio", got.yes_ratio);
}

void check_counting(Folder& folder, Comparer& compare) {
  std::vector<score::CountCase> cases;
  Json parsed = Json::array();
  for (const Json& one : folder.take("counting/cases")) {
    cases.push_back({one.at(0).get<std::string>(), one.at(1).get<int64_t>()});
    const auto number = score::number_in(cases.back().answer);
    parsed.push_back(number ? Json(*number) : Json());
  }
  compare.exact("counting/parsed", parsed);
  const score::Counting got = score::score_counts(cases);
  compare.number("counting/accuracy", got.accuracy);
  compare.number("counting/within_one", got.within_one);
  compare.number("counting/mean_absolute_error_of_parsed", got.mean_absolute_error);
  compare.number("counting/unparsed", static_cast<double>(got.unparsed));
}

}  // namespace

void check_metrics(Folder& folder, Report& report) {
  Comparer compare(folder, report);
  check_captions(folder, compare);
  check_retrieval(folder, compare);
  check_chair(folder, compare);
  check_yes_no(folder, compare);
  check_counting(folder, compare);
}

}  // namespace mm::oracle
