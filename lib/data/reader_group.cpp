#include "lib/data/reader_group.h"

#include <algorithm>

#include "lib/base/error.h"

namespace mm::data {

ReaderGroup reader_group(std::span<const int> data_coordinates, int rank) {
  const auto world = static_cast<int>(data_coordinates.size());
  if (rank < 0 || rank >= world) throw UsageError("rank {} of a mesh of {} ranks", rank, world);
  ReaderGroup group;
  group.data_rank = data_coordinates[static_cast<size_t>(rank)];
  group.data_ranks = 1 + *std::max_element(data_coordinates.begin(), data_coordinates.end());
  for (int coordinate = 0; coordinate < group.data_ranks; ++coordinate) {
    const auto ranks = std::count(data_coordinates.begin(), data_coordinates.end(), coordinate);
    if (ranks * group.data_ranks != world) {
      throw UsageError("mesh: {} of {} ranks have data coordinate {} of {}", ranks, world,
                       coordinate, group.data_ranks);
    }
  }
  for (int other = 0; other < world; ++other) {
    if (data_coordinates[static_cast<size_t>(other)] == group.data_rank)
      group.members.push_back(other);
  }
  group.reader = group.members.front();
  return group;
}

}  // namespace mm::data
