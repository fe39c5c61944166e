#include "lib/ckpt/convert.h"

#include <fmt/format.h>

#include <memory>

#include "apps/mmckpt/output_options.h"
#include "apps/mmckpt/verbs.h"
#include "lib/base/json.h"
#include "lib/ckpt/tensor_tree.h"

namespace mm::mmckpt {
namespace {

struct Options {
  std::string in, to = "hf", adapter, config;
  ckpt::ConvertOptions convert;
  OutputOptions output;
};

int run(const Options& options) {
  ckpt::ConvertOptions convert = options.convert;
  using To = ckpt::ConvertOptions::To;
  convert.to = options.to == "own" ? To::kOwn : options.to == "peft" ? To::kPeft : To::kHuggingFace;
  convert.adapter = options.adapter;
  convert.config = options.config;
  convert.dtype = options.output.element_type();
  convert.max_shard_bytes = options.output.max_shard_bytes;
  const ckpt::Conversion done =
      ckpt::convert(ckpt::resolve_target(options.in), options.output.out, convert);
  if (options.output.json) {
    const Json json{{"schema", 1},         {"out", options.output.out}, {"tensors", done.tensors},
                    {"files", done.files}, {"bytes", done.bytes},       {"notes", done.notes}};
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  for (const std::string& note : done.notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print("{}: {} tensors, {} in {} file{}\n", options.output.out, done.tensors,
             ckpt::size_text(done.bytes), done.files, done.files == 1 ? "" : "s");
  return 0;
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "merge", "Adds a PEFT low-rank adapter to its model and writes a Hugging Face directory.");
  auto options = std::make_shared<Options>();
  verb->add_option("base", options->in, "Hugging Face directory, RUN, RUN/ckpt or step-NNNNNNNN")
      ->required();
  verb->add_option("adapter", options->adapter,
                   "directory with adapter_config.json and adapter_model.safetensors")
      ->required();
  add_output_options(*verb, options->output);
  verb->footer(
      "Examples:\n"
      "  mmckpt merge llava-1.5-7b-hf my-adapter merged-hf\n"
      "  mmckpt merge runs/base my-adapter merged-hf --dtype bf16");
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

void add_convert(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "convert",
      "Writes the weights of a checkpoint as a Hugging Face directory, or the other way round.");
  auto options = std::make_shared<Options>();
  verb->add_option("in", options->in,
                   "Hugging Face or diffusers directory, RUN, RUN/ckpt, step-NNNNNNNN, or an "
                   "original DiT, PixArt or SD3 file")
      ->required();
  add_output_options(*verb, options->output);
  verb->add_option("--to", options->to,
                   "hf: config.json and safetensors; own: a checkpoint for init.from; peft: the "
                   "low-rank adapters alone")
      ->check(CLI::IsMember({"hf", "own", "peft"}))
      ->capture_default_str();
  verb->add_option("--config", options->config,
                   "diffusers' config.json of an original file; else what its shapes imply");
  verb->add_flag("--raw-weights", options->convert.raw_weights,
                 "of a run with a moving average of its weights: the weights themselves");
  verb->add_flag("--merge-lora", options->convert.merge_adapters,
                 "own: add low-rank adapters to their weights (hf always does)");
  verb->add_flag("--keep-filler-rows", options->convert.keep_filler_rows,
                 "hf, peft: keep vocabulary rows that only fill up to a multiple");
  verb->footer(
      "Examples:\n"
      "  mmckpt convert runs/quickstart quickstart-hf --dtype bf16\n"
      "  mmckpt convert llava-1.5-7b-hf start --to own\n"
      "  mmckpt convert DiT-XL-2-256x256.safetensors dit-xl-hf");
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mm::mmckpt
