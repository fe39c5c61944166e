#include "lib/ckpt/tensor_parts.h"

#include <algorithm>

#include "lib/base/error.h"

namespace mm::ckpt {
namespace {

/// Bytes [begin, end) of what `all` hands out.
void stream_range(const std::function<void(const ByteSink&)>& all, uint64_t begin, uint64_t end,
                  const ByteSink& sink) {
  uint64_t at = 0;
  all([&](std::span<const std::byte> piece) {
    const uint64_t from = std::max(begin, at), to = std::min(end, at + piece.size());
    if (from < to) sink(piece.subspan(from - at, to - from));
    at += piece.size();
  });
}

/// Bytes of one of `parts` equal parts.
uint64_t bytes_of_part(const TensorSource& tensor, uint64_t parts) {
  const uint64_t bytes = packed_bytes(tensor.dtype, tensor.shape).value();
  if (tensor.shape.empty() || tensor.shape[0] % parts != 0 || bytes % parts != 0)
    throw DataError("{} has shape {}; its first dimension was expected to be a multiple of {}",
                    tensor.name, shape_text(tensor.shape), parts);
  return bytes / parts;
}

}  // namespace

TensorSource part_of(const TensorSource& tensor, uint64_t number, uint64_t parts) {
  const uint64_t each = bytes_of_part(tensor, parts), begin = number * each;
  TensorSource out{.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape};
  out.shape[0] /= parts;
  out.stream = [all = tensor.stream, begin, each](const ByteSink& sink) {
    stream_range(all, begin, begin + each, sink);
  };
  return out;
}

TensorSource halves_swapped(const TensorSource& tensor) {
  const uint64_t half = bytes_of_part(tensor, 2);
  TensorSource out{.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape};
  out.stream = [all = tensor.stream, half](const ByteSink& sink) {
    stream_range(all, half, 2 * half, sink);
    stream_range(all, 0, half, sink);
  };
  return out;
}

}  // namespace mm::ckpt
