#include "apps/mmtrain/engine_loader.h"
#include "apps/mmtrain/verbs.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::string from, data;
  int64_t limit = 0, rows = 30;
  int64_t max_new_tokens = 32;
  bool json = false;
};
}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("eval",
                                      "Names held-out pictures: exact match, word F1 and recall@k, "
                                      "beside the untrained model and a blank picture.");
  auto options = std::make_shared<Options>();
  verb->add_option("--from", options->from, "run directory; its newest whole checkpoint is used")
      ->required();
  verb->add_option("--data", options->data,
                   "packed data set of pictures with names that were not trained on")
      ->required();
  verb->add_option("--limit", options->limit, "first pictures only, 0: all")->capture_default_str();
  verb->add_option("--rows", options->rows, "rows of the printed table of names")
      ->capture_default_str();
  verb->add_option("--max-new-tokens", options->max_new_tokens,
                   "tokens generated at most for a name")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "print the result as JSON (also in RUN/eval.json)");
  verb->footer(
      "Examples:\n"
      "  mmtrain eval --from runs/quickstart --data runs/quickstart-data/noto/heldout\n"
      "  mmtrain eval --from runs/quickstart --data runs/quickstart-data/noto/heldout --limit 20 "
      "--json");
  verb->callback([options, &action] {
    action = [options] {
      return call_engine("eval", {{"from", options->from},
                                  {"data", options->data},
                                  {"limit", options->limit},
                                  {"rows", options->rows},
                                  {"max_new_tokens", options->max_new_tokens},
                                  {"json", options->json}});
    };
  });
}

}  // namespace mm::mmtrain
