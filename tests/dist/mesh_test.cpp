#include "lib/dist/mesh.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

namespace mm::dist {

TEST_CASE("on a data-parallel mesh a rank's data coordinate is its rank and all ranks are peers") {
  for (int rank = 0; rank < 4; ++rank) {
    const Mesh mesh({.data = 4}, 4, rank);
    CHECK(mesh.world() == 4);
    CHECK(mesh.coordinate(MeshAxis::kData) == rank);
    CHECK(mesh.coordinate(MeshAxis::kTensor) == 0);
    CHECK(mesh.peers(MeshAxis::kData) == std::vector<int>{0, 1, 2, 3});
    CHECK(mesh.peers(MeshAxis::kPipeline) == std::vector<int>{rank});
    CHECK(mesh.group_name(MeshAxis::kData) == "data");
  }
}

TEST_CASE("group names are equal on exactly the ranks of a group") {
  const Mesh zero({.data = 2}, 2, 0), one({.data = 2}, 2, 1);
  CHECK(zero.group_name(MeshAxis::kData) == one.group_name(MeshAxis::kData));
  CHECK(zero.group_name(MeshAxis::kTensor) != one.group_name(MeshAxis::kTensor));
}

TEST_CASE("sizes that do not multiply to the world, or are not built yet, are refused by name") {
  const auto refused = [](const MeshSizes& sizes, int world, int rank, const char* words) {
    CHECK_THROWS_WITH_AS(Mesh(sizes, world, rank), doctest::Contains(words), UsageError);
  };
  refused({.data = 3}, 4, 0, "= 3, but there are 4 ranks");
  refused({.data = 2, .tensor = 2}, 4, 0, "parallel.tensor = 2");
  refused({.data = 2, .pipeline = 2}, 4, 0, "parallel.pipeline = 2");
  refused({.data = 2, .context = 2}, 4, 0, "parallel.context = 2");
  refused({.data = 0}, 1, 0, "parallel.data is 0");
  refused({.data = 2}, 2, 2, "rank 2 of a world of 2");
}

}  // namespace mm::dist
