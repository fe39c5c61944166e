#include "lib/dist/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "lib/base/error.h"

namespace mm::dist {
namespace {

constexpr std::array kFastestFirst = {MeshAxis::kTensor, MeshAxis::kContext, MeshAxis::kPipeline,
                                      MeshAxis::kData};

}  // namespace

const char* axis_name(MeshAxis axis) {
  switch (axis) {
    case MeshAxis::kData:
      return "data";
    case MeshAxis::kTensor:
      return "tensor";
    case MeshAxis::kPipeline:
      return "pipeline";
    case MeshAxis::kContext:
      return "context";
  }
  throw InternalError("mesh axis {} has no name", static_cast<int>(axis));
}

Mesh::Mesh(MeshSizes sizes, int world, int rank) : sizes_(sizes), rank_(rank) {
  int64_t product = 1;
  for (const MeshAxis axis : kFastestFirst) {
    if (size(axis) < 1)
      throw UsageError("parallel.{} is {}; it must be at least 1", axis_name(axis), size(axis));
    if (axis != MeshAxis::kData && size(axis) > 1) {
      throw UsageError(
          "parallel.{} = {}: this version has data parallelism only; {} parallelism comes with the "
          "hybrid-parallel release; set it to 1",
          axis_name(axis), size(axis), axis_name(axis));
    }
    product *= size(axis);
  }
  if (product != world) {
    throw UsageError(
        "data x tensor x pipeline x context = {} x {} x {} x {} = {}, but there are {} ranks; "
        "change "
        "[parallel] or the number of ranks",
        sizes_.data, sizes_.tensor, sizes_.pipeline, sizes_.context, product, world);
  }
  if (rank < 0 || rank >= world)
    throw UsageError("rank {} of a world of {} ranks; expected 0 to {}", rank, world, world - 1);
}

int Mesh::size(MeshAxis axis) const {
  switch (axis) {
    case MeshAxis::kData:
      return sizes_.data;
    case MeshAxis::kTensor:
      return sizes_.tensor;
    case MeshAxis::kPipeline:
      return sizes_.pipeline;
    case MeshAxis::kContext:
      return sizes_.context;
  }
  throw InternalError("mesh axis {} has no size", static_cast<int>(axis));
}

int Mesh::stride(MeshAxis axis) const {
  int stride = 1;
  for (const MeshAxis faster : kFastestFirst) {
    if (faster == axis) break;
    stride *= size(faster);
  }
  return stride;
}

int Mesh::coordinate_of(int rank, MeshAxis axis) const { return rank / stride(axis) % size(axis); }

std::vector<int> Mesh::peers(MeshAxis axis) const {
  const int first = rank_ - coordinate(axis) * stride(axis);
  std::vector<int> ranks;
  for (int i = 0; i < size(axis); ++i) ranks.push_back(first + i * stride(axis));
  return ranks;
}

std::string Mesh::group_name(MeshAxis axis) const {
  if (size(axis) == world()) return axis_name(axis);
  return fmt::format("{}/{}", axis_name(axis), peers(axis).front());
}

}  // namespace mm::dist
