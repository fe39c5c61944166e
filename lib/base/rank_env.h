#pragma once
#include <string>
#include <vector>

#include "lib/base/env.h"

namespace mm {

/// Who this process is among the ranks of its job, from its environment alone.
struct RankEnv {
  enum class Source {
    kAlone,      ///< nothing says otherwise: one rank
    kVariables,  ///< RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT, as `mmtrain launch`
                 ///< and torchrun set them
    kSlurm,      ///< srun
  };
  Source source = Source::kAlone;
  int rank = 0;
  int world = 1;
  int local_rank = 0;               ///< among the ranks of this node
  int local_world = 1;              ///< ranks of this node
  int node = 0;                     ///< index into `hosts`
  std::string host;                 ///< this node's name; Slurm's for it where there is one
  std::vector<std::string> hosts;   ///< in rank order; only this one if the variables do not say
  std::vector<int> ranks_per_node;  ///< as `hosts`; under kSlurm its sum is `world`
  std::string master_addr = "127.0.0.1";
  /// Where rank 0 listens; 0: rank 0 takes any free port and tells the others by a file (never
  /// derived from the job number, which would repeat).
  int master_port = 0;
  /// A listening socket of `master_port` that rank 0 inherited from `mmtrain launch`, or -1.
  int listen_fd = -1;
  /// Tells this start from others: ranks of another job, step or restart must not join. The same on
  /// all ranks.
  std::string job_id;
  int restart_count = 0;
};

/// Throws UsageError that names the variable: missing partners, text that is no number, a rank
/// outside the world, a MASTER_ADDR that is not the first host of the job, tasks per node that do
/// not add up. Slurm's variables count when SLURM_PROCID is set and RANK is not.
RankEnv read_rank_env(const env::Lookup& lookup = env::get);

/// "rank 3 of 8 on n07 (local 1 of 2)".
std::string describe(const RankEnv& ranks);

}  // namespace mm
