#include "lib/ckpt/diffusers_names.h"

#include <array>
#include <utility>

namespace mm::ckpt {

std::string diffusers_class(const Json& config) {
  const auto at = config.find("_class_name");
  return at != config.end() && at->is_string() ? at->get<std::string>() : "";
}

std::string weights_base_name(const Json& config) {
  return diffusers_class(config).empty() ? "model" : "diffusion_pytorch_model";
}

std::optional<std::string> published_vae_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kLayers = {
      {{"query", "to_q"}, {"key", "to_k"}, {"value", "to_v"}, {"proj_attn", "to_out.0"}}};
  constexpr std::string_view kAttention = ".mid_block.attentions.0.";
  const size_t begin = name.find(kAttention);
  if (begin == std::string_view::npos) return std::string(name);
  const std::string_view head = name.substr(0, begin + kAttention.size());
  const std::string_view tail = name.substr(head.size());
  for (const auto& [old, present] : kLayers) {
    if (tail.starts_with(old) && tail.substr(old.size()).starts_with("."))
      return std::string(head) + std::string(present) + std::string(tail.substr(old.size()));
  }
  return std::string(name);
}

}  // namespace mm::ckpt
