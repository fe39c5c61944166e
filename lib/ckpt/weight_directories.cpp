#include <memory>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/diffusers_names.h"
#include "lib/ckpt/dit_embedders.h"
#include "lib/ckpt/flat_llava.h"
#include "lib/ckpt/hf_names.h"
#include "lib/ckpt/original_names.h"
#include "lib/ckpt/text_encoder_names.h"
#include "lib/ckpt/weight_source_parts.h"

namespace fs = std::filesystem;

namespace mm::ckpt {
namespace {

constexpr uint64_t kMaxConfigBytes = 16 << 20;

Json read_config(const fs::path& path) {
  Json config = parse_json(read_file(path, kMaxConfigBytes), path.string(), {.max_depth = 32});
  if (!config.is_object()) throw DataError("{}: expected a JSON object", path.string());
  refuse_flat_llava(config, path.string());
  return config;
}

/// The published name of a tensor of the model that `config` describes; nothing: to be dropped.
std::optional<std::string> name_of(const Json& config, std::string_view stored) {
  if (diffusers_class(config) == "AutoencoderKL") return published_vae_name(stored);
  const std::string type = model_type_of(config);
  const auto name = published_name(type, stored);
  return name ? published_text_encoder_name(type, *name) : std::nullopt;
}

/// Older files hold the linear layers of a VAE's attention as 1x1 convolutions.
void flatten_attention(TensorSource& tensor) {
  const std::vector<uint64_t>& shape = tensor.shape;
  if (shape.size() == 4 && shape[2] == 1 && shape[3] == 1 &&
      tensor.name.find(".mid_block.attentions.") != std::string::npos)
    tensor.shape.resize(2);
}

void add_tensors(WeightSource& source, const HfWeights& weights) {
  const bool vae = diffusers_class(source.config) == "AutoencoderKL";
  for (const auto& [stored, tensor] : weights.tensors()) {
    const auto name = name_of(source.config, stored);
    if (!name) {
      source.notes.push_back(stored + " dropped: computed, or of another task's head");
      continue;
    }
    source.tensors.push_back(stream_of(*name, tensor));
    if (vae) flatten_attention(source.tensors.back());
  }
}

}  // namespace

WeightSource from_hugging_face(const fs::path& directory) {
  if (!fs::exists(directory / "config.json") && fs::exists(directory / "adapter_config.json"))
    throw DataError("{}: an adapter without its model; use mmckpt merge BASE {} OUT",
                    directory.string(), directory.string());
  const auto weights = std::make_shared<HfWeights>(HfWeights::open(directory));
  WeightSource source{.config = read_config(directory / "config.json"),
                      .side_files = side_files_of(directory),
                      .notes = weights->notes(),
                      .open_files = {weights}};
  add_tensors(source, *weights);
  sort_and_check(source, directory.string());
  drop_repeated_embedders(source);
  return source;
}

WeightSource from_original(const fs::path& path, const fs::path& config) {
  const auto file = std::make_shared<SafetensorsFile>(SafetensorsFile::open(path));
  WeightSource source{.open_files = {file}};
  for (const TensorEntry& entry : file->tensors())
    source.tensors.push_back(stream_of(entry.name, {file.get(), &entry}));
  const auto family = original_family(source.tensors);
  if (!family) {
    throw DataError(
        "{}: a lone safetensors file does not say which model it is; expected an original DiT, "
        "PixArt or SD3 checkpoint, a directory with config.json beside it, or one of our "
        "checkpoints",
        path.string());
  }
  const int64_t grid = original_grid(source.tensors);
  source.tensors = to_diffusers(std::move(source.tensors), *family, path.string(), source.notes);
  source.config = config.empty() ? implied_config(source.tensors, *family, grid, path.string())
                                 : read_config(config);
  if (diffusers_class(source.config) != diffusers_class(*family))
    throw DataError("{}: holds a {}, {} describes a {}", path.string(), diffusers_class(*family),
                    config.string(), diffusers_class(source.config));
  settle_config(source.config, source.tensors, *family);
  sort_and_check(source, path.string());
  return source;
}

}  // namespace mm::ckpt
