#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"

namespace mm::run {

/// What `mmtrain eval --task` can be asked for, in the order of its table.
enum class EvalTask {
  kNames,       ///< exact match, word F1, recall@k of names, beside two baselines
  kPerplexity,  ///< exp of the mean loss of a target
  kCaptions,    ///< BLEU, CIDEr, CIDEr-D, ROUGE-L
  kRetrieval,   ///< recall@k of captions given a picture, and of pictures given a caption
  kYesNo,       ///< accuracy, precision, recall, F1, share of yes, as POPE counts
  kCounting,    ///< accuracy, within one, mean error
  kSpatial,     ///< accuracy of left, right, above, below
  kChair        ///< hallucinated objects in captions
};
/// "names" "perplexity" "captions" "retrieval" "yes-no" "counting" "spatial" "chair".
std::string_view task_name(EvalTask task);
std::optional<EvalTask> task_from_name(std::string_view name);
std::vector<std::string> task_names();
/// Whether the task scores what the model writes.
bool needs_answers(EvalTask task);

/// A sample of the data set and what the model said.
struct AnsweredSample {
  std::string key;     ///< of the data set's record
  std::string prompt;  ///< what the user says, without pictures, roles and system text
  std::string truth;   ///< the sample's own answer
  std::string answer;
};

/// What tasks compare answers with beyond the data set's own.
struct TaskReferences {
  /// Captions by sample key; a sample that is not here has its own answer.
  std::map<std::string, std::vector<std::string>> captions;
  /// For CHAIR: words that name each object, and the objects that each sample's picture shows.
  std::map<std::string, std::vector<std::string>> synonyms;
  std::map<std::string, std::set<std::string>> objects;
};

/// JSON lines {"key" or "image_id": ..., "captions": [...] or "caption": "..."}; a key may come
/// again, its captions add up. Throws DataError with file and line.
void read_captions(const std::filesystem::path& path, TaskReferences& references);
/// {"synonyms": {object: [words]}, "objects": {sample key: [objects]}}. Throws DataError.
void read_objects(const std::filesystem::path& path, TaskReferences& references);

/// Figures of a task that scores answers, fractions of 1 unless named otherwise, with "samples".
/// Samples whose truth says nothing on the task (no yes or no, no number) are left out and counted
/// in "without_truth". Throws DataError where no sample is left or CHAIR has no objects.
Json score_task(EvalTask task, std::span<const AnsweredSample> samples,
                const TaskReferences& references);

/// A caption as COCO's tools compare them: lower case, words split by blanks, punctuation left out.
/// Their tokenizer also splits English contractions (don't: do n't); this one does not.
std::string caption_text(std::string_view caption);

/// One line an answer, as LLaVA writes them for the scorers of VQAv2, GQA, POPE and TextVQA:
/// {"question_id", "prompt", "text", "answer_id", "model_id", "metadata"}. A key that is a whole
/// number is written as one. Atomic.
void write_answers(const std::filesystem::path& path, std::span<const AnsweredSample> samples,
                   const std::string& model_id);

}  // namespace mm::run
