#pragma once
#include <span>
#include <vector>

namespace mm::data {

/// The ranks that need the same micro-batches: those with one data coordinate, which differ only in
/// tensor, pipeline and context. One of them reads, the others receive. Samples are counted once a
/// group, so nothing depends on how many ranks share one.
struct ReaderGroup {
  int data_rank = 0, data_ranks = 1;  ///< what the loader takes for its rank and ranks
  int reader = 0;                     ///< the lowest rank of the group
  std::vector<int> members;           ///< ascending; the reader is the first
};

/// The group of `rank` on a mesh, given as the data coordinate of each rank. Pure. Throws UsageError
/// unless the coordinates are 0 to n-1, each on the same number of ranks.
ReaderGroup reader_group(std::span<const int> data_coordinates, int rank);

}  // namespace mm::data
