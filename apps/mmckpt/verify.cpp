#include <fmt/format.h>

#include <memory>

#include "apps/mmckpt/verbs.h"
#include "lib/base/exit_code.h"
#include "lib/ckpt/verify_target.h"

namespace mm::mmckpt {
namespace {

struct Options {
  std::string path;
  ckpt::VerifyTargetOptions verify;
  bool quick = false;
  bool json = false;
};

int run(const Options& options) {
  ckpt::VerifyTargetOptions verify = options.verify;
  if (options.quick) verify.files.depth = ckpt::VerifyDepth::kStructure;
  const auto items = ckpt::verify_target(ckpt::resolve_target(options.path), verify);
  if (options.json) {
    fmt::print("{}\n", ckpt::verified_json(items, verify).dump(2));
  } else {
    fmt::print("{}", ckpt::verified_text(items, verify));
  }
  return static_cast<int>(ckpt::all_ok(items) ? ExitCode::kDone : ExitCode::kDataInvalid);
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "verify", "Checks commit marks, manifests, boxes, sizes, save ids and checksums.");
  auto options = std::make_shared<Options>();
  verb->add_option("path", options->path,
                   "safetensors file, Hugging Face directory, step-NNNNNNNN, RUN/ckpt or RUN")
      ->required();
  verb->add_flag("--quick", options->quick, "structure only: read no tensor, compare no checksum");
  verb->add_flag("--values", options->verify.values,
                 "count NaN, infinite values and odd BOOL bytes too");
  verb->add_option("--threads", options->verify.files.threads, "files read at once; 0: all cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  verb->add_flag("--json", options->json, "one JSON object instead of text");
  verb->footer(
      "Examples:\n"
      "  mmckpt verify runs/quickstart\n"
      "  mmckpt verify llava-hf --values\n"
      "Exit code 65 if anything is broken.");
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mm::mmckpt
