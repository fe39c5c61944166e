#include "lib/run/task_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "lib/base/error.h"
#include "lib/run/name_score.h"
#include "lib/score/answers.h"
#include "lib/score/bleu.h"
#include "lib/score/chair.h"
#include "lib/score/cider.h"
#include "lib/score/rouge.h"

namespace mm::run {
namespace {

constexpr std::array<std::string_view, 8> kTaskNames = {
    "names", "perplexity", "captions", "retrieval", "yes-no", "counting", "spatial", "chair"};

/// Cases of the samples whose truth can be read, and how many cannot.
template <typename Case, typename Read>
std::vector<Case> cases_of(std::span<const AnsweredSample> samples, const Read& truth_of,
                           std::string_view wanted) {
  std::vector<Case> cases;
  for (const AnsweredSample& sample : samples) {
    if (const auto truth = truth_of(sample.truth)) cases.push_back({sample.answer, *truth});
  }
  if (cases.empty() && !samples.empty())
    throw DataError("no answer of the data set {}; the first is \"{}\"", wanted,
                    samples.front().truth);
  return cases;
}

std::optional<bool> yes_or_no(std::string_view truth) {
  const std::vector<std::string> words = caption_words(truth);
  for (const std::string& word : words) {
    if (word == "yes" || word == "yes.") return true;
    if (word == "no" || word == "no." || word == "not") return false;
  }
  return std::nullopt;
}

Json yes_no_json(std::span<const AnsweredSample> samples) {
  const auto cases = cases_of<score::YesNoCase>(samples, yes_or_no, "says yes or no");
  const score::YesNo s = score::score_yes_no(cases);
  return {{"samples", cases.size()}, {"without_truth", samples.size() - cases.size()},
          {"accuracy", s.accuracy},  {"precision", s.precision},
          {"recall", s.recall},      {"f1", s.f1},
          {"yes_ratio", s.yes_ratio}};
}

Json counting_json(std::span<const AnsweredSample> samples) {
  const auto cases = cases_of<score::CountCase>(samples, score::number_in, "has a number");
  const score::Counting s = score::score_counts(cases);
  return {{"samples", cases.size()},
          {"without_truth", samples.size() - cases.size()},
          {"accuracy", s.accuracy},
          {"within_one", s.within_one},
          {"mean_absolute_error", s.mean_absolute_error},
          {"unparsed", s.unparsed}};
}

Json spatial_json(std::span<const AnsweredSample> samples) {
  const auto cases = cases_of<score::RelationCase>(samples, score::relation_in,
                                                   "says left, right, above or below");
  const score::Spatial s = score::score_relations(cases);
  return {{"samples", cases.size()},
          {"without_truth", samples.size() - cases.size()},
          {"accuracy", s.accuracy},
          {"unparsed", s.unparsed}};
}

Json captions_json(std::span<const AnsweredSample> samples, const TaskReferences& references) {
  std::vector<score::CaptionCase> cases;
  for (const AnsweredSample& sample : samples) {
    score::CaptionCase one{caption_text(sample.answer), {}};
    const auto found = references.captions.find(sample.key);
    if (found == references.captions.end()) {
      one.references.push_back(caption_text(sample.truth));
    } else {
      for (const std::string& caption : found->second)
        one.references.push_back(caption_text(caption));
    }
    cases.push_back(std::move(one));
  }
  const score::Bleu bleu = score::bleu(cases);
  return {{"samples", cases.size()},
          {"bleu_1", bleu.score[0]},
          {"bleu_2", bleu.score[1]},
          {"bleu_3", bleu.score[2]},
          {"bleu_4", bleu.score[3]},
          {"cider", score::cider(cases, score::CiderKind::kCider).mean},
          {"cider_d", score::cider(cases, score::CiderKind::kCiderD).mean},
          {"rouge_l", score::rouge_l(cases).mean}};
}

Json chair_json(std::span<const AnsweredSample> samples, const TaskReferences& references) {
  std::vector<score::ChairCase> cases;
  for (const AnsweredSample& sample : samples) {
    const auto found = references.objects.find(sample.key);
    if (found != references.objects.end())
      cases.push_back({caption_text(sample.answer), found->second});
  }
  if (cases.empty())
    throw DataError("the objects of none of the {} samples are known; CHAIR needs --objects FILE",
                    samples.size());
  const score::Chair s = score::chair(cases, score::ObjectFinder(references.synonyms));
  return {{"samples", cases.size()},
          {"without_truth", samples.size() - cases.size()},
          {"chair_i", s.per_instance},
          {"chair_s", s.per_sentence},
          {"recall", s.recall}};
}

}  // namespace

std::string_view task_name(EvalTask task) { return kTaskNames[static_cast<size_t>(task)]; }

std::optional<EvalTask> task_from_name(std::string_view name) {
  const auto found = std::find(kTaskNames.begin(), kTaskNames.end(), name);
  if (found == kTaskNames.end()) return std::nullopt;
  return static_cast<EvalTask>(found - kTaskNames.begin());
}

std::vector<std::string> task_names() { return {kTaskNames.begin(), kTaskNames.end()}; }

bool needs_answers(EvalTask task) {
  return task == EvalTask::kCaptions || task == EvalTask::kYesNo || task == EvalTask::kCounting ||
         task == EvalTask::kSpatial || task == EvalTask::kChair;
}

std::string caption_text(std::string_view caption) {
  std::string text;
  for (const char c : caption) {
    const auto byte = static_cast<unsigned char>(c);
    const bool drop = byte < 0x80 && std::ispunct(byte) != 0 && c != '\'' && c != '-';
    const bool blank = byte < 0x80 && std::isspace(byte) != 0;
    if (!drop && !blank) {
      text += byte < 0x80 ? static_cast<char>(std::tolower(byte)) : c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

Json score_task(EvalTask task, std::span<const AnsweredSample> samples,
                const TaskReferences& references) {
  switch (task) {
    case EvalTask::kCaptions:
      return captions_json(samples, references);
    case EvalTask::kYesNo:
      return yes_no_json(samples);
    case EvalTask::kCounting:
      return counting_json(samples);
    case EvalTask::kSpatial:
      return spatial_json(samples);
    case EvalTask::kChair:
      return chair_json(samples, references);
    default:
      throw InternalError("task {} scores no answers", task_name(task));
  }
}

}  // namespace mm::run
