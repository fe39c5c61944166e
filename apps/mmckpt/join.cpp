#include "lib/ckpt/join.h"

#include <fmt/format.h>

#include <memory>

#include "apps/mmckpt/output_options.h"
#include "apps/mmckpt/verbs.h"
#include "lib/base/json.h"
#include "lib/ckpt/tensor_tree.h"

namespace mm::mmckpt {
namespace {

struct Options {
  std::string vision, language;
  ckpt::JoinOptions join;
  OutputOptions output;
};

int run(const Options& options) {
  ckpt::JoinOptions join = options.join;
  join.dtype = options.output.element_type();
  join.max_shard_bytes = options.output.max_shard_bytes;
  const ckpt::Join done = ckpt::join(options.vision, options.language, options.output.out, join);
  if (options.output.json) {
    const Json json{{"schema", 1},
                    {"out", options.output.out},
                    {"tensors", done.tensors},
                    {"files", done.files},
                    {"bytes", done.bytes},
                    {"left_out", done.left_out},
                    {"image_token", done.image_token},
                    {"projector", false},
                    {"notes", done.notes}};
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  for (const std::string& note : done.notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print("{}: {} tensors, {} in {} file{}, image token {}, no projector\n", options.output.out,
             done.tensors, ckpt::size_text(done.bytes), done.files, done.files == 1 ? "" : "s",
             done.image_token);
  return 0;
}

}  // namespace

void add_join(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "join", "Joins a vision tower and a language model to the LLaVA directory of a first stage.");
  auto options = std::make_shared<Options>();
  verb->add_option("vision", options->vision, "Hugging Face directory of CLIP or SigLIP")
      ->required();
  verb->add_option("language", options->language,
                   "Hugging Face directory of Llama (Vicuna), Mistral, Qwen2 or Qwen3")
      ->required();
  add_output_options(*verb, options->output);
  verb->add_option("--feature-layer", options->join.feature_layer,
                   "the tower's layer that is read; 0: embeddings, negative: from the end")
      ->capture_default_str();
  verb->add_option("--family", options->join.family,
                   "llava: one square a picture; llava_next: tiles in LLaVA 1.6's grids too")
      ->check(CLI::IsMember({"llava", "llava_next"}))
      ->capture_default_str();
  verb->add_option("--projector", options->join.projector,
                   "layers that mmtrain run draws: two with GELU between them, or one")
      ->check(CLI::IsMember({"mlp2x_gelu", "linear"}))
      ->capture_default_str();
  verb->add_option("--image-token", options->join.image_token,
                   "id of the picture's mark: what mmshard pack gives it (the id behind the "
                   "tokenizer's last), where tables have rows to spare; default: a new row behind "
                   "them")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
  verb->footer(
      "The projector is in neither directory: mmtrain run draws it (model.from).\n"
      "Examples:\n"
      "  mmckpt join clip-vit-large-patch14-336 vicuna-7b-v1.5 llava-1.5-7b-start\n"
      "  mmckpt join siglip-so400m-patch14-384 Qwen2-7B start --dtype bf16 --image-token 151646");
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace mm::mmckpt
