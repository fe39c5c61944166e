#pragma once
#include <string>
#include <vector>

namespace mm::dist {

/// The ways in which ranks share a model's work.
enum class MeshAxis { kData, kTensor, kPipeline, kContext };
const char* axis_name(MeshAxis axis);

/// Ranks along each axis; their product is the world size.
struct MeshSizes {
  int data = 1, tensor = 1, pipeline = 1, context = 1;
  int world() const { return data * tensor * pipeline * context; }
};

/// Where a rank stands on the axes. Neighbouring ranks differ in the tensor coordinate first, then
/// context, pipeline, data: the axis that talks most stays inside a node, the one that talks least
/// crosses the network. Pure arithmetic, no communication.
class Mesh {
 public:
  /// Throws UsageError when a size is below 1, when the product is not `world`, when `rank` is
  /// outside it, or when an axis other than data exceeds 1 (not built yet).
  Mesh(MeshSizes sizes, int world, int rank);

  int rank() const { return rank_; }
  int world() const { return sizes_.world(); }
  int size(MeshAxis axis) const;
  int coordinate(MeshAxis axis) const { return coordinate_of(rank_, axis); }
  int coordinate_of(int rank, MeshAxis axis) const;
  /// Ranks that differ from this one on `axis` alone, ascending; this rank is among them.
  std::vector<int> peers(MeshAxis axis) const;
  /// Equal on exactly the ranks of `peers(axis)`: "data", or "tensor/3" when there are several
  /// groups of that axis.
  std::string group_name(MeshAxis axis) const;

 private:
  int stride(MeshAxis axis) const;

  MeshSizes sizes_;
  int rank_;
};

}  // namespace mm::dist
