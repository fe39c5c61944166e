#pragma once
#include <functional>
#include <memory>
#include <string>

#include "lib/base/json.h"
#include "lib/probe/collective_bench.h"
#include "lib/probe/rank_star.h"

namespace mm::probe {

struct NcclVerbOptions {
  BenchOptions bench;
  std::string group_by = "all";
  std::string directory = ".";   ///< where rank 0 tells its port
  std::string interface;         ///< as NCCL_SOCKET_IFNAME
  std::string backend = "nccl";  ///< its name, for reports of a failure
  std::string report;            ///< rank 0 also writes the JSON here, unless empty
  double timeout_s = 60;
  bool json = false;
};

Json options_json(const NcclVerbOptions& options);
NcclVerbOptions options_from_json(const Json& json);

/// What a backend needs to know: the ranks of its group and how to reach this one.
struct BackendSeat {
  std::vector<int> members;
  int rank = 0, local_rank = 0;
  std::string address;
  std::string interface;  ///< that has the address
  double timeout_s = 60;
};
using MakeBackend =
    std::function<std::unique_ptr<CollectiveBackend>(const BackendSeat& seat, RankStar& star)>;

/// The verb as one rank runs it: joins the others, measures, names slow, cut and flapping links,
/// prints on rank 0. Returns the exit code on all ranks: 0, 69, or 76 if the collective did not
/// end.
int run_nccl_verb(const NcclVerbOptions& options, const MakeBackend& make_backend);

/// The backend for GPUs; collective.
std::unique_ptr<CollectiveBackend> make_nccl_backend(const BackendSeat& seat, RankStar& star);

}  // namespace mm::probe
