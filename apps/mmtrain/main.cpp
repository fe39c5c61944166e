#include <fmt/format.h>

#include "apps/mmtrain/verbs.h"
#include "lib/base/cli.h"
#include "lib/base/exit_code.h"

int main(int argc, char** argv) {
  CLI::App app("Trains multimodal models from TOML recipes, on one core or many ranks.", "mmtrain");
  app.set_version_flag("--version", "mmtrain " MM_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  mmtrain launch --nproc 2 -- run recipes/quickstart-llava.toml --run runs/quickstart\n"
      "  srun -n 8 mmtrain run recipes/quickstart-llava.toml --run /store/run7\n"
      "Exit codes: 0 done, 2 usage or recipe, 65 data, 74 storage, 75 saved, run again, 76 peer "
      "lost, 79 numerical; docs/operations.md");
  mm::mmtrain::Action action;
  mm::mmtrain::add_run(app, action);
  mm::mmtrain::add_launch(app, action);
  mm::mmtrain::add_status(app, action);
  mm::mmtrain::add_check(app, action);
  mm::mmtrain::add_eval(app, action);
  mm::mmtrain::add_caption(app, action);
  mm::mmtrain::add_sample(app, action);
  mm::mmtrain::add_report(app, action);
  mm::mmtrain::add_import_recipe(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "mmtrain: error: {} (see `mmtrain --help`)\n", error.what());
    return static_cast<int>(mm::ExitCode::kUsage);
  }
  return mm::run_cli("mmtrain", action);
}
