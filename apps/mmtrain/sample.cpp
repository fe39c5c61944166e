#include "apps/mmtrain/encoder_options.h"
#include "apps/mmtrain/engine_loader.h"
#include "apps/mmtrain/verbs.h"
#include "lib/base/error.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::string from, out, grid, size, sampler;
  std::vector<std::string> prompts, labels;
  int64_t steps = 0;
  uint64_t seed = 0;
  double guidance = 4;
  EncoderOptions encoders;
  bool guide_three = false, raw_weights = false, json = false;
};

/// "4x3" as columns and rows, both at least 1; the empty word gives 0 x 0.
std::pair<int64_t, int64_t> pair_of(const std::string& word, const char* option, int64_t most) {
  if (word.empty()) return {0, 0};
  const size_t cross = word.find('x');
  const auto number = [&](const std::string& text) -> int64_t {
    if (text.empty() || text.size() > 5 ||
        text.find_first_not_of("0123456789") != std::string::npos)
      return 0;
    return std::stoll(text);
  };
  const int64_t first = number(word.substr(0, cross));
  const int64_t second = cross == std::string::npos ? 0 : number(word.substr(cross + 1));
  if (first < 1 || second < 1 || first > most || second > most)
    throw UsageError("{} {}: expected two numbers of 1 to {}, such as 4x4", option, word, most);
  return {first, second};
}

Json to_json(const Options& options) {
  const auto [columns, rows] = pair_of(options.grid, "--grid", 64);
  const auto [width, height] = pair_of(options.size, "--size", 16384);
  Json json{{"from", options.from},
            {"out", options.out},
            {"columns", columns},
            {"rows", rows},
            {"width", width},
            {"height", height},
            {"prompts", options.prompts},
            {"labels", options.labels},
            {"sampler", options.sampler},
            {"steps", options.steps},
            {"seed", options.seed},
            {"guidance", options.guidance},
            {"guide_three", options.guide_three},
            {"raw_weights", options.raw_weights},
            {"json", options.json}};
  put_encoders(options.encoders, json);
  return json;
}

void add_sampling_options(CLI::App& verb, Options& options) {
  verb.add_option("--sampler", options.sampler,
                  "ddim, dpm (DPM-Solver++ 2M) or euler; default: euler for flows, else ddim")
      ->check(CLI::IsMember({"ddim", "dpm", "euler"}));
  verb.add_option("--steps", options.steps,
                  "model evaluations a picture (default: 25 dpm, else 50)")
      ->check(CLI::Range(1, 10000));
  verb.add_option("--guidance", options.guidance,
                  "weight of the prompt against none (classifier-free guidance), 1: none")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  verb.add_flag("--guide-three", options.guide_three,
                "guide the first three channels alone, as the original DiT code does");
  verb.add_option("--seed", options.seed, "of the noise; a picture's noise depends on no other")
      ->capture_default_str();
  verb.add_flag("--raw-weights", options.raw_weights,
                "the weights themselves where the run has their moving average");
}

}  // namespace

void add_sample(CLI::App& app, Action& action) {
  CLI::App* verb =
      app.add_subcommand("sample", "Draws pictures with a trained diffusion run, one PNG.");
  auto options = std::make_shared<Options>();
  verb->add_option("--from", options->from, "run directory, whose newest whole checkpoint is used")
      ->required();
  verb->add_option("--prompt", options->prompts,
                   "captions, drawn in turn; without any, and without labels: no condition");
  verb->add_option("--label", options->labels,
                   "classes by name or number, of class-conditional models");
  verb->add_option("--grid", options->grid,
                   "columns x rows, such as 4x4; default: one row of all prompts or labels");
  verb->add_option(
      "--size", options->size,
      "width x height of a picture, pixels; default: the bucket it was trained on that is "
      "nearest to a square");
  verb->add_option("--out", options->out, "PNG file (default: sample.png in the run)");
  add_sampling_options(*verb, *options);
  add_encoder_options(*verb, options->encoders);
  verb->add_flag("--json", options->json, "one JSON object: file, prompts, seeds, settings");
  verb->footer(
      "Examples:\n"
      "  mmtrain sample --from runs/quickstart-dit --prompt \"red heart\" --grid 4x4\n"
      "  mmtrain sample --from runs/fashion --label Trouser Bag 7 --guidance 3 --grid 6x6");
  verb->callback([options, &action] {
    action = [options] {
      if (!options->prompts.empty() && !options->labels.empty())
        throw UsageError("--prompt and --label: a model has captions or classes; give one");
      return call_engine("sample", to_json(*options));
    };
  });
}

}  // namespace mm::mmtrain
