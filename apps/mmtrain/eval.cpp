#include "apps/mmtrain/encoder_options.h"
#include "apps/mmtrain/engine_loader.h"
#include "apps/mmtrain/verbs.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::string from, data, judge, encoded, answers, references, objects;
  EncoderOptions encoders;
  std::vector<std::string> tasks = {"names"};
  int64_t limit = 0, rows = 30;
  int64_t max_new_tokens = 32, steps = 25;
  double guidance = 3;
  bool guide_three = false, json = false;
};

void add_task_options(CLI::App& verb, Options& options) {
  verb.add_option("--task", options.tasks,
                  "one or more of names, perplexity, captions, retrieval, yes-no, counting, "
                  "spatial, chair")
      ->delimiter(',')
      ->capture_default_str();
  verb.add_option("--answers", options.answers,
                  "also write the answers as JSON lines, as LLaVA does for the scorers of VQAv2, "
                  "GQA, POPE and TextVQA");
  verb.add_option("--references", options.references,
                  "captions: JSON lines {\"key\", \"captions\": [...]}; without, a sample's own "
                  "answer is its reference")
      ->check(CLI::ExistingFile);
  verb.add_option("--objects", options.objects,
                  "chair: {\"synonyms\": {object: [words]}, \"objects\": {key: [objects]}}")
      ->check(CLI::ExistingFile);
}

void add_drawing_options(CLI::App& verb, Options& options) {
  verb.add_option("--judge", options.judge,
                  "of a diffusion run: a run or Hugging Face directory of a LLaVA that is asked "
                  "what the drawn pictures show; --data is then the held-out set of that run");
  verb.add_option("--guidance", options.guidance, "of a diffusion run: as in mmtrain sample")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  verb.add_flag("--guide-three", options.guide_three, "of a diffusion run: as in mmtrain sample");
  verb.add_option("--steps", options.steps, "of a diffusion run: model evaluations a picture")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
}

void add_stored_options(CLI::App& verb, Options& options) {
  verb.add_option(
      "--encoded", options.encoded,
      "of a diffusion run on latents or embeddings: what mmshard encode made of --data; "
      "without, the models encode it");
  add_encoder_options(verb, options.encoders);
}

Json to_json(const Options& options) {
  Json json{{"from", options.from},       {"data", options.data},
            {"judge", options.judge},     {"guidance", options.guidance},
            {"steps", options.steps},     {"tasks", options.tasks},
            {"answers", options.answers}, {"references", options.references},
            {"objects", options.objects}, {"limit", options.limit},
            {"rows", options.rows},       {"max_new_tokens", options.max_new_tokens},
            {"encoded", options.encoded}, {"guide_three", options.guide_three},
            {"json", options.json}};
  put_encoders(options.encoders, json);
  return json;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("eval",
                                      "Scores a run or a published LLaVA on a packed data set: "
                                      "names of pictures beside two baselines, perplexity, "
                                      "captions, answers; of a diffusion run the loss at fixed "
                                      "times, or by a judge; of an autoencoder its "
                                      "reconstructions.");
  auto options = std::make_shared<Options>();
  verb->add_option(
          "--from", options->from,
          "run directory, whose newest whole checkpoint is used, or Hugging Face directory "
          "of LLaVA, LLaVA-NeXT, OneVision or Qwen2.5-VL, with --data packed with its "
          "tokenizer")
      ->required();
  verb->add_option("--data", options->data,
                   "packed data set of pictures with names that were not trained on, or of "
                   "conversations, each round of which is a question; of a diffusion "
                   "run without --judge: a bucketed set with its classes or its tokenizer; of an "
                   "autoencoder: any bucketed set")
      ->required();
  add_task_options(*verb, *options);
  add_drawing_options(*verb, *options);
  add_stored_options(*verb, *options);
  verb->add_option("--limit", options->limit, "first samples only, 0: all")->capture_default_str();
  verb->add_option("--rows", options->rows, "rows of the printed table of names")
      ->capture_default_str();
  verb->add_option("--max-new-tokens", options->max_new_tokens,
                   "tokens generated at most for an answer")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb->add_flag(
      "--json", options->json,
      "print the result as JSON (also in RUN/eval.json, beside what earlier calls found)");
  verb->footer(
      "Examples:\n"
      "  mmtrain eval --from runs/quickstart --data runs/quickstart-data/noto/heldout\n"
      "  mmtrain eval --from runs/quickstart --data runs/quickstart-data/noto/heldout --limit 20 "
      "--json\n"
      "  mmtrain eval --from runs/fashion --data data/packed/fashion-heldout\n"
      "  mmtrain eval --from runs/fashion-vae --data data/packed/fashion-heldout\n"
      "  mmtrain eval --from runs/quickstart-dit --judge runs/quickstart --data "
      "runs/quickstart-data/noto/heldout\n"
      "  mmtrain eval --from runs/vqa --data data/pope --task yes-no,perplexity --answers "
      "pope.jsonl");
  verb->callback([options, &action] {
    action = [options] { return call_engine("eval", to_json(*options)); };
  });
}

}  // namespace mm::mmtrain
