#include "lib/ckpt/dit_embedders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/hash.h"
#include "lib/ckpt/diffusers_names.h"

namespace mm::ckpt {
namespace {

constexpr std::string_view kBlocks = "transformer_blocks.", kEmbedder = ".norm1.emb.";

bool is_dit(const WeightSource& source) {
  return diffusers_class(source.config) == "DiTTransformer2DModel";
}

/// "transformer_blocks.3.norm1.emb.x" -> "x", and whether the block is not the first.
struct EmbedderName {
  std::string tail;
  bool first = false;
};
std::optional<EmbedderName> embedder_name(std::string_view name) {
  const size_t at = name.find(kEmbedder);
  if (!name.starts_with(kBlocks) || at == std::string_view::npos) return std::nullopt;
  return EmbedderName{std::string(name.substr(at + kEmbedder.size())),
                      name.substr(kBlocks.size(), at - kBlocks.size()) == "0"};
}

std::vector<std::byte> bytes_of(const TensorSource& tensor) {
  std::vector<std::byte> bytes;
  tensor.stream([&](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  });
  return bytes;
}

bool same(const TensorSource& a, const TensorSource& b) {
  return a.dtype == b.dtype && a.shape == b.shape && bytes_of(a) == bytes_of(b);
}

uint64_t layers_of(const WeightSource& source) {
  const auto at = source.config.find("num_layers");
  constexpr uint64_t kPublished = 28, kMost = 4096;
  if (at == source.config.end() || !at->is_number_unsigned()) return kPublished;
  return std::min(at->get<uint64_t>(), kMost);
}

}  // namespace

void drop_repeated_embedders(WeightSource& source) {
  if (!is_dit(source)) return;
  std::map<std::string, const TensorSource*> first;
  for (const TensorSource& tensor : source.tensors)
    if (const auto name = embedder_name(tensor.name); name && name->first)
      first[name->tail] = &tensor;
  size_t copies = 0;
  for (const TensorSource& tensor : source.tensors) {
    const auto name = embedder_name(tensor.name);
    if (!name || name->first) continue;
    const auto at = first.find(name->tail);
    if (at == first.end() || !same(*at->second, tensor)) {
      source.notes.push_back(tensor.name + " differs from block 0's: one embedder a block is kept");
      source.config["own_embedders"] = true;
      return;
    }
    ++copies;
  }
  std::erase_if(source.tensors, [](const TensorSource& tensor) {
    const auto name = embedder_name(tensor.name);
    return name && !name->first;
  });
  if (copies > 0)
    source.notes.push_back(
        fmt::format("{} copies of block 0's embedder dropped: equal in all blocks", copies));
}

void repeat_embedders(WeightSource& source) {
  if (!is_dit(source)) return;
  std::vector<TensorSource> copies;
  for (const TensorSource& tensor : source.tensors) {
    const auto name = embedder_name(tensor.name);
    if (!name) continue;
    if (!name->first) return;
    for (uint64_t block = 1; block < layers_of(source); ++block) {
      copies.push_back(tensor);
      copies.back().name = fmt::format("{}{}{}{}", kBlocks, block, kEmbedder, name->tail);
    }
  }
  source.tensors.insert(source.tensors.end(), copies.begin(), copies.end());
  std::ranges::sort(source.tensors, {}, &TensorSource::name);
}

}  // namespace mm::ckpt
