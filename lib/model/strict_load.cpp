#include "lib/model/strict_load.h"

#include <ATen/ATen.h>

#include <map>

#include "lib/base/error.h"
#include "lib/ckpt/safetensors.h"
#include "lib/model/hf_load.h"

namespace mm::model {
namespace {

struct Stored {
  const ckpt::HfTensor* tensor = nullptr;
  std::string name;  ///< in the file

  at::Tensor value() const { return to_tensor(*tensor->file, *tensor->entry); }
};
using StoredByName = std::map<std::string, Stored>;

StoredByName respelled(const ckpt::HfWeights& weights, const StrictLoad& options) {
  StoredByName found;
  for (const auto& [stored, tensor] : weights.tensors()) {
    const auto name = options.respell ? options.respell(stored) : std::optional(stored);
    if (!name) continue;
    const auto [at, fresh] = found.emplace(*name, Stored{&tensor, stored});
    if (!fresh)
      throw DataError("{}: {} and {} are both {}", options.origin, at->second.name, stored, *name);
  }
  return found;
}

void drop_copies(StoredByName& found, const StrictLoad& options) {
  for (const auto& [copy, original] : options.copies) {
    const auto at = found.find(copy), kept = found.find(original);
    if (at == found.end()) continue;
    if (kept == found.end()) {
      found.emplace(original, at->second);
    } else if (!at::equal(at->second.value(), kept->second.value())) {
      throw DataError(
          "{}: {} differs from {}, of which it is a copy in this model; remove the wrong one",
          options.origin, at->second.name, kept->second.name);
    }
    found.erase(copy);
  }
}

std::vector<uint64_t> without_last_ones(std::vector<uint64_t> shape) {
  while (!shape.empty() && shape.back() == 1) shape.pop_back();
  return shape;
}

at::Tensor checked(const ParamSpec& spec, const Stored& stored, const std::string& origin) {
  const std::vector<uint64_t> want(spec.shape.begin(), spec.shape.end());
  const ckpt::TensorEntry& entry = *stored.tensor->entry;
  if (without_last_ones(entry.shape) != without_last_ones(want))
    throw DataError("{}: {} has shape {}, config.json asks for {}", origin, stored.name,
                    ckpt::shape_text(entry.shape), ckpt::shape_text(want));
  const at::Tensor value = stored.value();
  if (!value.is_floating_point())
    throw DataError("{}: {} holds {}, expected floating-point numbers", origin, stored.name,
                    ckpt::dtype_name(entry.dtype));
  return value.reshape(spec.shape);
}

}  // namespace

std::vector<at::Tensor> load_strictly(const Model& model, const ckpt::HfWeights& weights,
                                      const StrictLoad& options) {
  StoredByName found = respelled(weights, options);
  drop_copies(found, options);
  std::vector<at::Tensor> values;
  for (const ParamSpec& spec : model.params) {
    const auto at = found.find(spec.name);
    if (at == found.end())
      throw DataError(
          "{}: no tensor for parameter {}; the weights do not belong to this config.json",
          options.origin, spec.name);
    values.push_back(checked(spec, at->second, options.origin));
    found.erase(at);
  }
  if (!found.empty())
    throw DataError("{}: {} tensors have no place in the model, first {}", options.origin,
                    found.size(), found.begin()->second.name);
  return values;
}

}  // namespace mm::model
