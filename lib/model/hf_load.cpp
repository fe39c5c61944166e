#include "lib/model/hf_load.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "lib/base/error.h"
#include "lib/ckpt/hf_names.h"
#include "lib/model/llava.h"
#include "lib/model/tile_features.h"
#include "lib/model/vocab_rows.h"

namespace mm::model {
namespace {

/// Published name -> the tensor's entry. All names of the directory, renamed, each once.
struct Source {
  const ckpt::HfTensor* tensor = nullptr;
  std::string stored_name;
};
using Sources = std::map<std::string, Source>;

Sources rename_all(const ckpt::HfWeights& weights, Family family, const std::string& origin) {
  Sources sources;
  for (const auto& [stored, tensor] : weights.tensors()) {
    const auto name = ckpt::published_name(family_name(family), stored);
    if (!name) continue;
    const auto [it, fresh] = sources.emplace(*name, Source{&tensor, stored});
    if (!fresh) {
      throw DataError("{}: {} and {} are both {}", origin, it->second.stored_name, stored, *name);
    }
  }
  return sources;
}

at::Tensor value_of(const Source& source) {
  return to_tensor(*source.tensor->file, *source.tensor->entry);
}

void settle_tied_head(Sources& sources, Family family, const std::string& origin) {
  const std::string prefix = family == Family::kQwen25Vl ? "" : "language_model.";
  const auto head = sources.find(prefix + "lm_head.weight");
  if (head == sources.end()) return;
  const auto table = sources.find(prefix + "model.embed_tokens.weight");
  if (table != sources.end() && !at::equal(value_of(head->second), value_of(table->second))) {
    throw DataError(
        "{}: tie_word_embeddings is true, but {} differs from {}; set it to false in config.json "
        "to keep both",
        origin, head->second.stored_name, table->second.stored_name);
  }
  sources.erase(head);
}

bool has_fewer_rows(const Source& source, const std::vector<uint64_t>& shape) {
  const std::vector<uint64_t>& stored = source.tensor->entry->shape;
  return stored.size() == 2 && stored[1] == shape[1] && stored[0] > 0 && stored[0] < shape[0];
}

at::Tensor checked_value(const ParamSpec& spec, const Source& source, const LoadOptions& options,
                         const std::string& origin) {
  const std::vector<uint64_t> shape(spec.shape.begin(), spec.shape.end());
  const bool grows = options.new_rows && is_vocab_table(spec.name) && has_fewer_rows(source, shape);
  if (!grows && source.tensor->entry->shape != shape) {
    throw DataError("{}: {} has shape {}, config.json asks for {}", origin, source.stored_name,
                    ckpt::shape_text(source.tensor->entry->shape), ckpt::shape_text(shape));
  }
  const at::Tensor value = value_of(source);
  if (!value.is_floating_point()) {
    throw DataError("{}: {} holds {}, expected floating-point numbers", origin, source.stored_name,
                    ckpt::dtype_name(source.tensor->entry->dtype));
  }
  return grows ? grow_rows(value, spec.shape[0]) : value;
}

bool is_projector(const ParamSpec& spec) { return spec.part == Part::kProjector; }

/// Names of parameters that the caller draws: all of a projector, or its newline alone.
std::set<std::string> drawn_names(const Model& model, const Sources& sources) {
  std::set<std::string> missing;
  size_t projector = 0;
  for (const ParamSpec& spec : model.params) {
    if (!is_projector(spec)) continue;
    ++projector;
    if (!sources.contains(spec.name)) missing.insert(spec.name);
  }
  const bool newline = missing == std::set<std::string>{kImageNewline};
  return newline || missing.size() == projector ? missing : std::set<std::string>{};
}

void refuse_missing(const Model& model, const Sources& sources, const std::set<std::string>& drawn,
                    const std::string& origin) {
  std::string first;
  int count = 0;
  for (const ParamSpec& spec : model.params) {
    if (sources.contains(spec.name) || drawn.contains(spec.name)) continue;
    if (count++ == 0) first = spec.name;
  }
  if (count > 0) {
    throw DataError(
        "{}: no tensor for {} of {} parameters, first {}; the weights do not belong to this "
        "config.json",
        origin, count, model.params.size(), first);
  }
}

}  // namespace

at::Tensor to_tensor(const ckpt::SafetensorsFile& file, const ckpt::TensorEntry& entry) {
  static const std::map<ckpt::DType, at::ScalarType> kTypes = {
      {ckpt::DType::kF64, at::kDouble},    {ckpt::DType::kF32, at::kFloat},
      {ckpt::DType::kBF16, at::kBFloat16}, {ckpt::DType::kF16, at::kHalf},
      {ckpt::DType::kI64, at::kLong},      {ckpt::DType::kI32, at::kInt},
      {ckpt::DType::kU8, at::kByte},       {ckpt::DType::kI8, at::kChar},
      {ckpt::DType::kBool, at::kBool}};
  const auto type = kTypes.find(entry.dtype);
  if (type == kTypes.end()) {
    throw DataError("{}: {} has dtype {}, which cannot be read as a tensor", file.path().string(),
                    entry.name, ckpt::dtype_name(entry.dtype));
  }
  const std::vector<int64_t> shape(entry.shape.begin(), entry.shape.end());
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(type->second));
  MM_CHECK(tensor.nbytes() == entry.size_bytes(), "{} has {} bytes for {}", entry.name,
           entry.size_bytes(), tensor.nbytes());
  file.read(entry, {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()});
  return tensor;
}

std::vector<at::Tensor> load_llava_weights(const Model& model, const LlavaConfig& config,
                                           const ckpt::HfWeights& weights,
                                           const std::string& origin, const LoadOptions& options) {
  Sources sources = rename_all(weights, config.family, origin);
  if (config.text.tied_head) settle_tied_head(sources, config.family, origin);
  std::set<std::string> drawn;
  if (options.may_lack_projector) drawn = drawn_names(model, sources);
  refuse_missing(model, sources, drawn, origin);
  std::vector<at::Tensor> values;
  for (const ParamSpec& spec : model.params) {
    if (drawn.contains(spec.name)) {
      values.emplace_back();
      continue;
    }
    values.push_back(checked_value(spec, sources.at(spec.name), options, origin));
    sources.erase(spec.name);
  }
  if (!sources.empty()) {
    throw DataError("{}: {} tensors have no place in the model, first {}", origin, sources.size(),
                    sources.begin()->second.stored_name);
  }
  return values;
}

LlavaConfig read_directory_config(const std::filesystem::path& directory) {
  LlavaConfig config = read_llava_config(directory / "config.json");
  if (!config.may_tie_head || !ckpt::HfWeights::looks_like(directory)) return config;
  const ckpt::HfWeights weights = ckpt::HfWeights::open(directory);
  config.text.tied_head = std::ranges::none_of(
      weights.tensors(), [](const auto& named) { return named.first.ends_with("lm_head.weight"); });
  return config;
}

LoadedLlava load_llava(const std::filesystem::path& directory) {
  const LlavaConfig config = read_directory_config(directory);
  Model model = build_llava(config);
  auto values =
      load_llava_weights(model, config, ckpt::HfWeights::open(directory), directory.string());
  return {config, std::move(model), std::move(values)};
}

}  // namespace mm::model
