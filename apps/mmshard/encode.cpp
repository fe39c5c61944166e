#include <memory>

#include "apps/mmshard/verbs.h"
#include "apps/mmtrain/engine_loader.h"

namespace mmshard {
namespace {

struct Options {
  std::string dataset, out, vae, text_encoder, latents = "mean_std", dtype = "fp32";
  int threads = 0;
  bool json = false;
};

mm::Json to_json(const Options& o) {
  return {{"dataset", o.dataset},
          {"out", o.out},
          {"vae", o.vae},
          {"text_encoder", o.text_encoder},
          {"mean_only", o.latents == "mean"},
          {"dtype", o.dtype},
          {"threads", o.threads},
          {"json", o.json}};
}

}  // namespace

void add_encode(CLI::App& app, Body& body) {
  CLI::App* verb = app.add_subcommand(
      "encode", "Stores what a VAE and a text encoder make of a data set's pictures and captions.");
  auto options = std::make_shared<Options>();
  verb->add_option("dataset", options->dataset, "packed data set, one picture a sample")
      ->required();
  verb->add_option("out", options->out, "directory to write")->required();
  verb->add_option("--vae", options->vae, "diffusers directory of an AutoencoderKL");
  verb->add_option("--text-encoder", options->text_encoder,
                   "Hugging Face directory of a CLIP, T5 or BERT encoder, with its tokenizer");
  verb->add_option("--latents", options->latents,
                   "mean_std: drawn anew in each epoch; mean: half the bytes")
      ->check(CLI::IsMember({"mean_std", "mean"}))
      ->capture_default_str();
  verb->add_option("--dtype", options->dtype, "of what is stored; encoders run in fp32")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "0: all cores")->capture_default_str();
  verb->add_flag("--json", options->json, "one object on stdout");
  verb->footer(
      "Several ranks (RANK and WORLD_SIZE, or srun) share the work; a call after a kill goes on.\n"
      "Examples:\n"
      "  mmshard encode sets/stamps sets/stamps-latents --vae sd-vae\n"
      "  srun -n 8 mmshard encode sets/laion sets/laion-enc --vae sd-vae --text-encoder t5-xxl");
  verb->callback([options, &body] {
    body = [options] { return mm::mmtrain::call_engine("encode", to_json(*options)); };
  });
}

}  // namespace mmshard
