#include "lib/ckpt/inspect.h"

#include <fmt/format.h>

#include <memory>

#include "apps/mmckpt/verbs.h"

namespace mm::mmckpt {
namespace {

struct Options {
  std::string path;
  ckpt::InspectTextOptions text;
  bool json = false;
};

int run(const Options& options) {
  const ckpt::Inspection inspection = ckpt::inspect(ckpt::resolve_target(options.path));
  if (options.json) {
    fmt::print("{}\n", ckpt::inspection_json(inspection).dump(2));
  } else {
    fmt::print("{}", ckpt::inspection_text(inspection, options.text));
  }
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "inspect", "Shows tensors, sizes and layout of a checkpoint; reads headers only.");
  auto options = std::make_shared<Options>();
  verb->add_option("path", options->path,
                   "safetensors file, Hugging Face directory, step-NNNNNNNN, RUN/ckpt or RUN")
      ->required();
  verb->add_option("--depth", options->text.depth, "levels of the tree")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  verb->add_flag("--tensors", options->text.tensors,
                 "one line per tensor: dtype, shape, size, pieces");
  verb->add_flag("--json", options->json, "one JSON object instead of text");
  verb->footer(
      "Examples:\n"
      "  mmckpt inspect runs/quickstart --depth 2\n"
      "  mmckpt inspect model.safetensors --tensors");
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mm::mmckpt
