#include <memory>
#include <string>
#include <vector>

#include "apps/mmshard/verbs.h"
#include "apps/mmtrain/engine_loader.h"

namespace mmshard {
namespace {

struct Options {
  std::string dataset, out, vae, latents = "mean_std", dtype = "fp32";
  std::vector<std::string> text_encoders;
  int64_t text_padding = -1;
  double bad_percent = 0.1;
  int threads = 0;
  bool json = false;
};

mm::Json to_json(const Options& o) {
  return {{"dataset", o.dataset},
          {"out", o.out},
          {"vae", o.vae},
          {"text_encoders", o.text_encoders},
          {"text_padding", o.text_padding},
          {"mean_only", o.latents == "mean"},
          {"dtype", o.dtype},
          {"bad_percent", o.bad_percent},
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
  verb->add_option("--text-encoder", options->text_encoders,
                   "Hugging Face directory of a CLIP, T5 or BERT encoder, with its tokenizer; "
                   "several, CLIP before T5, are joined as SD3 does");
  verb->add_option("--text-padding", options->text_padding,
                   "T5's and BERT's captions are filled up or cut to so many tokens, the filling "
                   "read like text; 0: their own length (default: 77 for several encoders, else 0)")
      ->check(CLI::Range(0, 4096));
  verb->add_option("--latents", options->latents,
                   "mean_std: drawn anew in each epoch; mean: half the bytes")
      ->check(CLI::IsMember({"mean_std", "mean"}))
      ->capture_default_str();
  verb->add_option("--dtype", options->dtype, "of what is stored; encoders run in fp32")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
      ->capture_default_str();
  verb->add_option("--bad-limit", options->bad_percent,
                   "percent of the samples that may be unreadable: they are named, recorded as "
                   "absent and trained with weight 0")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "0: all cores")->capture_default_str();
  verb->add_flag("--json", options->json, "one object on stdout");
  verb->footer(
      "Several ranks (RANK and WORLD_SIZE, or srun) share the work; a call after a kill goes on.\n"
      "Examples:\n"
      "  mmshard encode sets/stamps sets/stamps-latents --vae sd-vae\n"
      "  srun -n 8 mmshard encode sets/laion sets/laion-enc --vae sd-vae --text-encoder t5-xxl\n"
      "  mmshard encode sets/sd3 sets/sd3-enc --vae sd3/vae --dtype bf16 \\\n"
      "      --text-encoder sd3/text_encoder sd3/text_encoder_2 sd3/text_encoder_3");
  verb->callback([options, &body] {
    body = [options] { return mm::mmtrain::call_engine("encode", to_json(*options)); };
  });
}

}  // namespace mmshard
