#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/health/finding.h"
#include "lib/probe/collective_backend.h"
#include "lib/probe/rank_star.h"

namespace mm::probe {

struct BenchOptions {
  Collective collective = Collective::kAllReduce;
  uint64_t min_bytes = uint64_t{32} << 20, max_bytes = uint64_t{32} << 20;
  double factor = 2;  ///< from one size to the next
  int iterations = 20, warm_up = 1;
  bool check = true;
  std::optional<double> expected_gb_s;  ///< bus bandwidth at the largest size
  double tolerance = 0.1;               ///< how far below is still good
};

/// One timing, averaged over ranks.
struct BenchTiming {
  double seconds = 0;
  Bandwidth bandwidth;
  uint64_t wrong = 0;  ///< elements, over all ranks
};

struct BenchRow {
  uint64_t bytes = 0;
  size_t count = 0;  ///< as nccl-tests prints it: elements of one rank's part
  BenchTiming out_of_place;
  std::optional<BenchTiming> in_place;
};

/// One group of ranks that measured together; groups run at the same time.
struct BenchGroup {
  std::vector<int> ranks;          ///< of the world
  std::vector<std::string> hosts;  ///< of those ranks
  std::vector<BenchRow> rows;
  std::optional<LatencyFit> fit;  ///< out of place
};

struct BenchReport {
  BenchOptions options;
  std::string backend, version, group_by;
  std::vector<std::string> devices;  ///< by rank of the world
  std::vector<std::string> hosts;
  std::vector<BenchGroup> groups;
  std::vector<health::Finding> findings;
  double average_bus_gb_s = 0;  ///< over rows and groups, as nccl-tests prints it
  std::string failure;          ///< why nothing was measured; empty: it was
};

/// Which group a rank is in: "all" 0, "node" one group a host, "local" one a local rank (the pure
/// network: ranks of one rail).
int group_of(const std::string& group_by, const std::vector<std::string>& hosts, int rank);

/// This rank's rows; collective over `backend`'s ranks (`members` of the world, in their order).
std::vector<BenchRow> run_bench(const BenchOptions& options, CollectiveBackend& backend,
                                const std::vector<int>& members, int rank);

/// Gathers rows of all ranks on all ranks and judges: collective over the star.
BenchReport gather_bench(const BenchOptions& options, const std::string& group_by,
                         const CollectiveBackend& backend, const std::vector<BenchRow>& own,
                         RankStar& star);

/// F55 wrong results, F06 below expectation, F06 one group far below the others' median, F07 not
/// measured because a rank or the network was lost. What one host is to blame for names it in
/// `hosts`.
std::vector<health::Finding> judge_bench(const BenchReport& report);

/// `hosts` once each, in their order.
std::vector<std::string> once_each(const std::vector<std::string>& hosts);

/// nccl-tests' lines and columns, then fit, groups and findings.
std::string bench_text(const BenchReport& report);
Json bench_json(const BenchReport& report);

}  // namespace mm::probe
