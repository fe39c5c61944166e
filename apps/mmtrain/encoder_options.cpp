#include "apps/mmtrain/encoder_options.h"

namespace mm::mmtrain {

void add_encoder_options(CLI::App& verb, EncoderOptions& options) {
  verb.add_option("--vae", options.vae,
                  "of a diffusion run on latents: directory of the autoencoder they are of "
                  "(default: model.vae of its recipe)");
  verb.add_option("--text-encoder", options.text_encoders,
                  "of a diffusion run on embeddings: directories of the text encoders they are of, "
                  "in their order (default: model.text_model and on of its recipe)");
  verb.add_option("--text-padding", options.text_padding,
                  "with --text-encoder: as mmshard encode had it (default: 77 for several "
                  "encoders, else 0)")
      ->check(CLI::Range(0, 4096));
}

void put_encoders(const EncoderOptions& options, Json& json) {
  json["vae"] = options.vae;
  json["text_encoders"] = options.text_encoders;
  json["text_padding"] = options.text_padding;
}

}  // namespace mm::mmtrain
