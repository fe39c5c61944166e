#include "apps/mmckpt/verbs.h"
#include "lib/base/cli.h"
#include "lib/base/exit_code.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Looks into checkpoints, checks and converts them: ours, safetensors files, Hugging Face "
      "directories.",
      "mmckpt");
  app.set_version_flag("--version", "mmckpt " MM_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  mmckpt inspect runs/quickstart\n"
      "  mmckpt verify runs/quickstart/ckpt/step-00001200\n"
      "  mmckpt convert runs/quickstart quickstart-hf --dtype bf16\n"
      "  mmckpt join clip-vit-large-patch14-336 vicuna-7b-v1.5 llava-start\n"
      "Exit codes: 0 done, 2 usage, 65 checkpoint invalid, 74 storage; docs/operations.md");
  mm::mmckpt::Action action;
  mm::mmckpt::add_convert(app, action);
  mm::mmckpt::add_inspect(app, action);
  mm::mmckpt::add_join(app, action);
  mm::mmckpt::add_merge(app, action);
  mm::mmckpt::add_verify(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return 0;
    return static_cast<int>(mm::ExitCode::kUsage);
  }
  return mm::run_cli("mmckpt", action);
}
