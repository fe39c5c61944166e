#include "apps/mmtrain/engine_loader.h"
#include "apps/mmtrain/verbs.h"
#include "lib/base/error.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::vector<std::string> pictures;
  std::string from, prompt;
  int64_t max_tokens = 64, top_k = 0, beams = 1;
  uint64_t seed = 0;
  double temperature = 0, top_p = 1, length_penalty = 1;
  bool json = false;
};

void add_choice_options(CLI::App& verb, Options& options) {
  verb.add_option("--temperature", options.temperature, "0: always the most likely token")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  verb.add_option("--top-p", options.top_p, "draw among the likeliest tokens of this probability")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb.add_option("--top-k", options.top_k, "draw among so many likeliest tokens, 0: all")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  verb.add_option("--seed", options.seed, "of the draws; a picture's text depends on no other")
      ->capture_default_str();
  verb.add_option("--beams", options.beams, "beam search of this width, at temperature 0")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  verb.add_option("--length-penalty", options.length_penalty,
                  "beams: exponent of the length that scores are divided by")
      ->check(CLI::Range(-10.0, 10.0))
      ->capture_default_str();
}

Json to_json(const Options& options) {
  return {{"pictures", options.pictures},
          {"from", options.from},
          {"prompt", options.prompt},
          {"max_tokens", options.max_tokens},
          {"temperature", options.temperature},
          {"top_p", options.top_p},
          {"top_k", options.top_k},
          {"seed", options.seed},
          {"beams", options.beams},
          {"length_penalty", options.length_penalty},
          {"json", options.json}};
}

}  // namespace

void add_caption(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "caption", "Says what is in a picture, by a trained run or a published model.");
  auto options = std::make_shared<Options>();
  verb->add_option("picture", options->pictures, "PNG or JPEG files")->required();
  verb->add_option(
          "--from", options->from,
          "run directory, whose newest whole checkpoint is used, or Hugging Face directory of "
          "LLaVA, LLaVA-NeXT, OneVision or Qwen2.5-VL")
      ->required();
  verb->add_option(
      "--prompt", options->prompt,
      "a question, or text with <image> (Qwen's <|image_pad|>) that is taken as it is; default: as "
      "the run was "
      "trained, or \"Describe the picture.\"");
  verb->add_option("--max-tokens,--max-new-tokens", options->max_tokens, "tokens generated at most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  add_choice_options(*verb, *options);
  verb->add_flag("--json", options->json, "one JSON object instead of a line a picture");
  verb->footer(
      "Examples:\n"
      "  mmtrain caption picture.png --from runs/quickstart\n"
      "  mmtrain caption a.png b.jpg --from llava-1.5-7b-hf --prompt \"What is it?\" --json");
  verb->callback([options, &action] {
    action = [options] {
      if (options->beams > 1 && options->temperature > 0)
        throw UsageError("--beams: a beam search draws nothing; leave --temperature at 0");
      return call_engine("caption", to_json(*options));
    };
  });
}

}  // namespace mm::mmtrain
