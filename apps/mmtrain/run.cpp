#include "apps/mmtrain/engine_loader.h"
#include "apps/mmtrain/verbs.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::string recipe, run, resume = "auto";
  std::vector<std::string> set;
  int64_t stop_after = 0;
  bool allow_loss_change = false;
};
}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "run", "Trains one rank of a run; start it by `mmtrain launch` or srun for several ranks.");
  auto options = std::make_shared<Options>();
  verb->add_option("recipe", options->recipe, "TOML recipe")->required();
  verb->add_option("--run", options->run, "run directory, made if absent")->required();
  verb->add_option("--resume", options->resume,
                   "auto: from the newest whole checkpoint if there is one; must: only so; never: "
                   "refuse a used directory")
      ->check(CLI::IsMember({"auto", "must", "never"}))
      ->capture_default_str();
  verb->add_option("--set", options->set,
                   "override a key: --set train.seed=3, --set stage.0.steps=10 (may be repeated)")
      ->allow_extra_args(false);
  verb->add_option("--stop-after", options->stop_after,
                   "save and exit with 75 after this global step, 0: at the end")
      ->capture_default_str();
  verb->add_flag("--allow-loss-change", options->allow_loss_change,
                 "go on although the recipe's loss is not the one the checkpoint was made with");
  verb->footer(
      "Examples:\n"
      "  mmtrain run recipes/quickstart-llava.toml --run runs/a\n"
      "  mmtrain launch --nproc 2 -- run recipes/quickstart-llava.toml --run runs/a --set "
      "run.seed=3");
  verb->callback([options, &action] {
    action = [options] {
      return call_engine("run", {{"recipe", options->recipe},
                                 {"run", options->run},
                                 {"resume", options->resume},
                                 {"set", options->set},
                                 {"stop_after", options->stop_after},
                                 {"allow_loss_change", options->allow_loss_change}});
    };
  });
}

}  // namespace mm::mmtrain
