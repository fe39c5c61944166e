#include "apps/mmtrain/engine_loader.h"
#include "apps/mmtrain/verbs.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::string from, data, answers, references, objects;
  std::vector<std::string> tasks = {"names"};
  int64_t limit = 0, rows = 30;
  int64_t max_new_tokens = 32;
  bool json = false;
};
}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("eval",
                                      "Scores a run on a packed data set: names of pictures beside "
                                      "two baselines, perplexity, captions, answers.");
  auto options = std::make_shared<Options>();
  verb->add_option("--from", options->from, "run directory; its newest whole checkpoint is used")
      ->required();
  verb->add_option("--data", options->data,
                   "packed data set of pictures with names that were not trained on")
      ->required();
  verb->add_option("--task", options->tasks,
                   "one or more of names, perplexity, captions, retrieval, yes-no, counting, "
                   "spatial, chair")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--answers", options->answers,
                   "also write the answers as JSON lines, as LLaVA does for the scorers of VQAv2, "
                   "GQA, POPE and TextVQA");
  verb->add_option("--references", options->references,
                   "captions: JSON lines {\"key\", \"captions\": [...]}; without, a sample's own "
                   "answer is its reference")
      ->check(CLI::ExistingFile);
  verb->add_option("--objects", options->objects,
                   "chair: {\"synonyms\": {object: [words]}, \"objects\": {key: [objects]}}")
      ->check(CLI::ExistingFile);
  verb->add_option("--limit", options->limit, "first samples only, 0: all")->capture_default_str();
  verb->add_option("--rows", options->rows, "rows of the printed table of names")
      ->capture_default_str();
  verb->add_option("--max-new-tokens", options->max_new_tokens,
                   "tokens generated at most for an answer")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "print the result as JSON (also in RUN/eval.json)");
  verb->footer(
      "Examples:\n"
      "  mmtrain eval --from runs/quickstart --data runs/quickstart-data/noto/heldout\n"
      "  mmtrain eval --from runs/quickstart --data runs/quickstart-data/noto/heldout --limit 20 "
      "--json\n"
      "  mmtrain eval --from runs/vqa --data data/pope --task yes-no,perplexity --answers "
      "pope.jsonl");
  verb->callback([options, &action] {
    action = [options] {
      return call_engine("eval", {{"from", options->from},
                                  {"data", options->data},
                                  {"tasks", options->tasks},
                                  {"answers", options->answers},
                                  {"references", options->references},
                                  {"objects", options->objects},
                                  {"limit", options->limit},
                                  {"rows", options->rows},
                                  {"max_new_tokens", options->max_new_tokens},
                                  {"json", options->json}});
    };
  });
}

}  // namespace mm::mmtrain
