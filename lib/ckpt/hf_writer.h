#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "lib/ckpt/weight_source.h"

namespace mm::ckpt {

/// `tensor` with its elements as `to`: each part that comes is cast (cast_floats) and handed on.
/// Tensors of other than floating-point numbers stay as they are.
TensorSource as_dtype(TensorSource tensor, DType to);

/// What config.json calls a floating-point type: "float16", "bfloat16", "float64", else "float32".
std::string torch_dtype_name(DType dtype);

/// Bytes of all elements.
uint64_t tensor_bytes(const TensorSource& tensor);

/// Writes config.json and model.safetensors (diffusers' name for its models), or files of at most
/// `most` bytes of tensors each (a larger tensor has one of its own) in the order of names, with an
/// index. Returns the number of files. Throws as write_safetensors does.
size_t write_hugging_face(const WeightSource& source, const std::filesystem::path& out,
                          uint64_t most);

/// Copies WeightSource::side_files. Throws IoError.
void copy_side_files(const WeightSource& source, const std::filesystem::path& into);

}  // namespace mm::ckpt
