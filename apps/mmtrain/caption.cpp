#include "apps/mmtrain/engine_loader.h"
#include "apps/mmtrain/verbs.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::vector<std::string> pictures;
  std::string from;
  int64_t max_new_tokens = 64;
  bool json = false;
};
}  // namespace

void add_caption(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("caption", "Says what is in a picture, by a trained run.");
  auto options = std::make_shared<Options>();
  verb->add_option("picture", options->pictures, "PNG or JPEG files")->required();
  verb->add_option("--from", options->from, "run directory; its newest whole checkpoint is used")
      ->required();
  verb->add_option("--max-new-tokens", options->max_new_tokens, "tokens generated at most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "one JSON object instead of a line a picture");
  verb->footer(
      "Examples:\n"
      "  mmtrain caption picture.png --from runs/quickstart\n"
      "  mmtrain caption a.png b.jpg --from runs/quickstart --json");
  verb->callback([options, &action] {
    action = [options] {
      return call_engine("caption", {{"pictures", options->pictures},
                                     {"from", options->from},
                                     {"max_new_tokens", options->max_new_tokens},
                                     {"json", options->json}});
    };
  });
}

}  // namespace mm::mmtrain
