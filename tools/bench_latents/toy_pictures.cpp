#include "tools/bench_latents/toy_pictures.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "lib/base/file.h"
#include "lib/ckpt/safetensors_writer.h"
#include "lib/data/pack_dataset.h"
#include "lib/image/encode.h"
#include "lib/model/eager.h"
#include "lib/model/vae.h"

namespace fs = std::filesystem;

namespace mm::bench {

fs::path pack_noise(const fs::path& directory, int64_t count, int64_t side) {
  const auto pixels = static_cast<int32_t>(side);
  at::manual_seed(1);
  for (int64_t i = 0; i < count; ++i) {
    const fs::path folder = directory / "pictures" / (i % 2 == 0 ? "even" : "odd");
    fs::create_directories(folder);
    image::Image picture(pixels, pixels);
    const at::Tensor noise = at::randint(256, {std::ssize(picture.rgb)}, at::kByte);
    std::copy_n(noise.const_data_ptr<uint8_t>(), picture.rgb.size(), picture.rgb.begin());
    write_file_atomic(folder / fmt::format("{:04}.png", i), image::encode_png(picture));
  }
  data::PackOptions options;
  options.source = {
      .kind = data::SourceKind::kFolder, .path = directory / "pictures", .labels = "folder"};
  options.pictures.geometry = "buckets";
  options.pictures.buckets = fmt::format("{}x{}", side, side);
  data::pack_dataset(options, {.output = directory / "set"});
  return directory / "set";
}

fs::path write_random_vae(const fs::path& directory) {
  const model::VaeConfig config{.channels = {128, 256, 512, 512}, .layers_per_block = 2};
  fs::create_directories(directory);
  write_file_atomic(directory / "config.json", model::to_json(config).dump(2));
  model::Model model;
  declare_vae_encoder(model, config, "");
  declare_vae_decoder(model, config, "");
  const auto params = model::SimpleParams::random(model, 1, at::kFloat);
  std::vector<ckpt::TensorSource> sources;
  std::vector<at::Tensor> kept;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const at::Tensor value = params.get(static_cast<model::ParamId>(i)).detach().contiguous();
    kept.push_back(value);
    sources.push_back(
        {.name = model.params[i].name,
         .shape = {value.sizes().begin(), value.sizes().end()},
         .bytes = {static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()}});
  }
  ckpt::write_safetensors(directory / "diffusion_pytorch_model.safetensors", sources);
  return directory;
}

}  // namespace mm::bench
