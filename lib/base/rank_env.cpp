#include "lib/base/rank_env.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "lib/base/error.h"
#include "lib/base/slurm.h"
#include "lib/base/text_escape.h"

namespace mm {
namespace {

constexpr int kMaxRanks = 1'000'000;
constexpr int kMaxPort = 65535;
constexpr int kMaxDescriptor = 1 << 20;
constexpr int kMaxRestarts = 1'000'000;

class Variables {
 public:
  explicit Variables(const env::Lookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(const std::string& name) const { return lookup_(name); }
  std::optional<int> find(const std::string& name, int min, int max) const {
    const auto value = env::get_int(name, min, max, lookup_);
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  }
  int need(const std::string& name, const std::string& because, int min, int max) const {
    if (const auto value = find(name, min, max)) return *value;
    throw UsageError("{} is set but {} is not; set both, or none to run one rank", because, name);
  }
  std::string need_text(const std::string& name, const std::string& because) const {
    if (const auto value = text(name)) return *value;
    throw UsageError("{} is set but {} is not", because, name);
  }

 private:
  const env::Lookup& lookup_;
};

std::string own_host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

void check_below(const char* name, int value, const char* limit_name, int limit) {
  if (value < limit) return;
  throw UsageError("{}={} is not below {}={}", name, value, limit_name, limit);
}

bool is_listening(int fd) {
  int listening = 0;
  socklen_t size = sizeof(listening);
  return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0;
}

std::string short_name(const std::string& host) { return host.substr(0, host.find('.')); }

// One process without partners has no rendezvous, so an address left in the environment does no
// harm.
void read_master(const Variables& v, RankEnv& ranks) {
  const std::string& first = ranks.hosts.front();
  const auto given = v.text("MASTER_ADDR");
  if (ranks.source == RankEnv::Source::kSlurm) {
    // Numbers and localhost cannot be compared with names; rank 0 finds out when it binds.
    const bool is_name = given && given->find_first_not_of("0123456789.:") != std::string::npos &&
                         *given != "localhost";
    if (is_name && *given != first && short_name(*given) != short_name(first)) {
      throw UsageError(
          "MASTER_ADDR={} is not the first host of the job ({}), where rank 0 listens; unset it",
          escape_text(*given), first);
    }
    ranks.master_addr = given.value_or(ranks.hosts.size() == 1 ? "127.0.0.1" : first);
  } else if (given) {
    ranks.master_addr = *given;
  }
  ranks.master_port = v.find("MASTER_PORT", 1, kMaxPort).value_or(0);
  if (ranks.rank != 0) return;
  ranks.listen_fd = v.find("MM_LISTEN_FD", 0, kMaxDescriptor).value_or(-1);
  if (ranks.listen_fd >= 0 && !is_listening(ranks.listen_fd)) {
    throw UsageError("MM_LISTEN_FD={} is not a listening socket; only mmtrain launch sets it",
                     ranks.listen_fd);
  }
}

RankEnv from_variables(const Variables& v) {
  RankEnv ranks;
  ranks.source = RankEnv::Source::kVariables;
  ranks.rank = v.need("RANK", "WORLD_SIZE", 0, kMaxRanks);
  ranks.world = v.need("WORLD_SIZE", "RANK", 1, kMaxRanks);
  check_below("RANK", ranks.rank, "WORLD_SIZE", ranks.world);
  ranks.local_rank = v.find("LOCAL_RANK", 0, kMaxRanks).value_or(ranks.rank);
  ranks.local_world = v.find("LOCAL_WORLD_SIZE", 1, kMaxRanks).value_or(ranks.world);
  check_below("LOCAL_RANK", ranks.local_rank, "LOCAL_WORLD_SIZE", ranks.local_world);
  ranks.host = v.text("SLURMD_NODENAME").value_or(own_host_name());
  ranks.hosts = {ranks.host};
  ranks.ranks_per_node = {ranks.local_world};
  if (ranks.world > 1) v.need_text("MASTER_ADDR", "WORLD_SIZE");
  read_master(v, ranks);
  ranks.restart_count = v.find("MM_RESTART_COUNT", 0, kMaxRestarts).value_or(0);
  ranks.job_id = v.text("MM_JOB_ID").value_or("port-" + std::to_string(ranks.master_port));
  return ranks;
}

void read_slurm_nodes(const Variables& v, RankEnv& ranks) {
  const bool step = v.text("SLURM_STEP_NODELIST").has_value();
  const std::string list_name = step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  ranks.hosts = slurm::expand_hostlist(v.need_text(list_name, "SLURM_PROCID"));
  const bool step_tasks = v.text("SLURM_STEP_TASKS_PER_NODE").has_value();
  const std::string name = step_tasks ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  const std::string text = v.need_text(name, "SLURM_PROCID");
  ranks.ranks_per_node = slurm::expand_tasks_per_node(text);
  const int64_t sum =
      std::accumulate(ranks.ranks_per_node.begin(), ranks.ranks_per_node.end(), int64_t{0});
  if (sum != ranks.world) {
    throw UsageError("{}={} adds up to {} tasks, but SLURM_NTASKS={}", name, text, sum,
                     ranks.world);
  }
  if (ranks.ranks_per_node.size() != ranks.hosts.size()) {
    throw UsageError("{}={} is for {} nodes, but {} names {}", name, text,
                     ranks.ranks_per_node.size(), list_name, ranks.hosts.size());
  }
}

RankEnv from_slurm(const Variables& v) {
  RankEnv ranks;
  ranks.source = RankEnv::Source::kSlurm;
  ranks.rank = v.need("SLURM_PROCID", "SLURM_NTASKS", 0, kMaxRanks);
  const bool step = v.text("SLURM_STEP_NUM_TASKS").has_value();
  ranks.world =
      v.need(step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", "SLURM_PROCID", 1, kMaxRanks);
  check_below("SLURM_PROCID", ranks.rank, "SLURM_NTASKS", ranks.world);
  read_slurm_nodes(v, ranks);
  ranks.node = v.need("SLURM_NODEID", "SLURM_PROCID", 0, kMaxRanks);
  check_below("SLURM_NODEID", ranks.node, "number of nodes", static_cast<int>(ranks.hosts.size()));
  ranks.local_rank = v.need("SLURM_LOCALID", "SLURM_PROCID", 0, kMaxRanks);
  ranks.local_world = ranks.ranks_per_node[static_cast<size_t>(ranks.node)];
  check_below("SLURM_LOCALID", ranks.local_rank, "tasks of this node", ranks.local_world);
  ranks.host = ranks.hosts[static_cast<size_t>(ranks.node)];
  read_master(v, ranks);
  ranks.restart_count = v.find("SLURM_RESTART_COUNT", 0, kMaxRestarts).value_or(0);
  ranks.job_id = v.need_text("SLURM_JOB_ID", "SLURM_PROCID") + "." +
                 v.text("SLURM_STEP_ID").value_or("0") + "." + std::to_string(ranks.restart_count);
  return ranks;
}

}  // namespace

RankEnv read_rank_env(const env::Lookup& lookup) {
  const Variables v(lookup);
  if (v.text("RANK") || v.text("WORLD_SIZE")) return from_variables(v);
  if (v.text("SLURM_PROCID")) return from_slurm(v);
  RankEnv alone;
  alone.host = own_host_name();
  alone.hosts = {alone.host};
  alone.ranks_per_node = {1};
  alone.job_id = "alone";
  return alone;
}

std::string describe(const RankEnv& ranks) {
  return fmt::format("rank {} of {} on {} (local {} of {})", ranks.rank, ranks.world, ranks.host,
                     ranks.local_rank, ranks.local_world);
}

}  // namespace mm
