#include "lib/ckpt/low_rank.h"

#include <cstring>
#include <map>

#include "lib/base/error.h"
#include "lib/base/thread_pool.h"
#include "lib/ckpt/float_cast.h"

namespace mm::ckpt {
namespace {

constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight", kWeight = ".weight";

/// The tensor's elements as `T` (float or double).
template <typename T>
std::vector<T> elements(const TensorSource& tensor) {
  std::vector<std::byte> bytes;
  const auto take = [&](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  tensor.stream ? tensor.stream(take) : take(tensor.bytes);
  const std::vector<std::byte> wide =
      cast_floats(bytes, tensor.dtype, sizeof(T) == 8 ? DType::kF64 : DType::kF32, tensor.name);
  std::vector<T> values(wide.size() / sizeof(T));
  if (!wide.empty()) std::memcpy(values.data(), wide.data(), wide.size());
  return values;
}

struct Pair {
  const TensorSource *a = nullptr, *b = nullptr;
};

/// weight += scale * b a, row by row; the inner loop runs over a contiguous row.
template <typename T>
void add_product(std::vector<T>& weight, const std::vector<T>& a, const std::vector<T>& b, T scale,
                 size_t rank) {
  const size_t in = a.size() / rank, out = b.size() / rank;
  parallel_for(out, 0, [&](size_t row) {
    std::vector<T> sum(in, T{0});
    for (size_t k = 0; k < rank; ++k) {
      const T factor = b[row * rank + k];
      const T* from = a.data() + k * in;
      for (size_t column = 0; column < in; ++column) sum[column] += factor * from[column];
    }
    T* to = weight.data() + row * in;
    for (size_t column = 0; column < in; ++column) to[column] += scale * sum[column];
  });
}

template <typename T>
void stream_merged(const TensorSource& weight, const TensorSource& a, const TensorSource& b,
                   double scale, const ByteSink& sink) {
  std::vector<T> values = elements<T>(weight);
  add_product<T>(values, elements<T>(a), elements<T>(b), static_cast<T>(scale), a.shape[0]);
  sink(cast_floats(std::as_bytes(std::span(values)), sizeof(T) == 8 ? DType::kF64 : DType::kF32,
                   weight.dtype, weight.name));
}

void check_pair(const TensorSource& weight, const Pair& pair, const LowRank& low_rank,
                const std::string& origin) {
  const auto rank = static_cast<uint64_t>(low_rank.rank);
  const bool fits = weight.shape.size() == 2 && pair.a->shape.size() == 2 &&
                    pair.b->shape.size() == 2 && pair.a->shape[0] == rank &&
                    pair.b->shape[1] == rank && pair.a->shape[1] == weight.shape[1] &&
                    pair.b->shape[0] == weight.shape[0] && is_float_dtype(weight.dtype) &&
                    is_float_dtype(pair.a->dtype) && is_float_dtype(pair.b->dtype);
  if (fits && rank > 0) return;
  throw DataError("{}: {} {} and {} do not fit {} {} at rank {}", origin, pair.a->name,
                  shape_text(pair.a->shape), shape_text(pair.b->shape), weight.name,
                  shape_text(weight.shape), low_rank.rank);
}

TensorSource merged(const TensorSource& weight, const Pair& pair, double scale) {
  TensorSource out = weight;
  out.bytes = {};
  out.stream = [weight, a = *pair.a, b = *pair.b, scale](const ByteSink& sink) {
    weight.dtype == DType::kF64 ? stream_merged<double>(weight, a, b, scale, sink)
                                : stream_merged<float>(weight, a, b, scale, sink);
  };
  return out;
}

}  // namespace

bool is_low_rank_name(std::string_view tensor) {
  return tensor.ends_with(kA) || tensor.ends_with(kB);
}

std::string low_rank_module(std::string_view tensor) {
  return std::string(tensor.substr(0, tensor.size() - kA.size()));
}

void merge_low_rank(std::vector<TensorSource>& tensors, const LowRank& low_rank,
                    const std::string& origin) {
  std::map<std::string, Pair> pairs;
  for (const TensorSource& tensor : tensors) {
    if (!is_low_rank_name(tensor.name)) continue;
    Pair& pair = pairs[low_rank_module(tensor.name)];
    (tensor.name.ends_with(kA) ? pair.a : pair.b) = &tensor;
  }
  std::vector<TensorSource> out;
  for (const TensorSource& tensor : tensors) {
    if (is_low_rank_name(tensor.name)) continue;
    const std::string_view name = tensor.name;
    const auto pair = name.ends_with(kWeight)
                          ? pairs.find(std::string(name.substr(0, name.size() - kWeight.size())))
                          : pairs.end();
    if (pair == pairs.end()) {
      out.push_back(tensor);
      continue;
    }
    if (pair->second.a == nullptr || pair->second.b == nullptr)
      throw DataError("{}: {} has one half of a low-rank pair, expected lora_A and lora_B", origin,
                      pair->first);
    check_pair(tensor, pair->second, low_rank, origin);
    out.push_back(merged(tensor, pair->second, low_rank.scale()));
    pairs.erase(pair);
  }
  if (!pairs.empty())
    throw DataError("{}: an adapter of {}, which the model does not have", origin,
                    pairs.begin()->first);
  tensors = std::move(out);
}

}  // namespace mm::ckpt
