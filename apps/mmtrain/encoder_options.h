#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/json.h"

namespace mm::mmtrain {

/// Frozen models that a diffusion run of latents or embeddings needs.
struct EncoderOptions {
  std::string vae;
  std::vector<std::string> text_encoders;
  int64_t text_padding = -1;
};

/// --vae, --text-encoder, --text-padding; all default to what the run's recipe names.
void add_encoder_options(CLI::App& verb, EncoderOptions& options);

/// Adds "vae", "text_encoders", "text_padding".
void put_encoders(const EncoderOptions& options, Json& json);

}  // namespace mm::mmtrain
