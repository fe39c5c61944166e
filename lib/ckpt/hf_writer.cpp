#include "lib/ckpt/hf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "lib/base/file.h"
#include "lib/ckpt/diffusers_names.h"
#include "lib/ckpt/float_cast.h"

namespace fs = std::filesystem;

namespace mm::ckpt {
namespace {

/// Tensors in files of at most `most` bytes, in the order of their names; a larger tensor has a
/// file of its own.
std::vector<std::span<const TensorSource>> split(std::span<const TensorSource> tensors,
                                                 uint64_t most) {
  std::vector<std::span<const TensorSource>> files;
  size_t begin = 0;
  uint64_t sum = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t bytes = tensor_bytes(tensors[i]);
    if (i > begin && bytes > most - std::min(sum, most)) {
      files.push_back(tensors.subspan(begin, i - begin));
      begin = i;
      sum = 0;
    }
    sum += bytes;
  }
  files.push_back(tensors.subspan(begin));
  return files;
}

}  // namespace

TensorSource as_dtype(TensorSource tensor, DType to) {
  const DType from = tensor.dtype;
  if (!is_float_dtype(from) || from == to) return tensor;
  return {
      .name = tensor.name,
      .dtype = to,
      .shape = tensor.shape,
      .stream = [name = tensor.name, stream = tensor.stream, from, to](const ByteSink& sink) {
        stream([&](std::span<const std::byte> part) { sink(cast_floats(part, from, to, name)); });
      }};
}

std::string torch_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "float16";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF64:
      return "float64";
    default:
      return "float32";
  }
}

uint64_t tensor_bytes(const TensorSource& tensor) {
  return packed_bytes(tensor.dtype, tensor.shape).value();
}

size_t write_hugging_face(const WeightSource& source, const fs::path& out, uint64_t most) {
  const auto files = split(source.tensors, most);
  const std::string base = weights_base_name(source.config);
  Json map = Json::object();
  uint64_t total = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string name =
        files.size() == 1 ? base + ".safetensors"
                          : fmt::format("{}-{:05}-of-{:05}.safetensors", base, i + 1, files.size());
    write_safetensors(out / name, files[i]);
    for (const TensorSource& tensor : files[i]) {
      map[tensor.name] = name;
      total += tensor_bytes(tensor);
    }
  }
  if (files.size() > 1) {
    const Json index{{"metadata", {{"total_size", total}}}, {"weight_map", map}};
    write_file_atomic(out / (base + ".safetensors.index.json"), index.dump(2) + "\n");
  }
  write_file_atomic(out / "config.json", source.config.dump(2) + "\n");
  return files.size();
}

void copy_side_files(const WeightSource& source, const fs::path& into) {
  if (source.side_files.empty()) return;
  fs::create_directories(into);
  for (const fs::path& file : source.side_files)
    write_file_atomic(into / file.filename(), read_file(file));
}

}  // namespace mm::ckpt
