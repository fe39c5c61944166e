#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/rank_env.h"
#include "lib/probe/tcp_socket.h"

namespace mm::probe {

struct StarOptions {
  /// Where rank 0 tells its port if nobody chose one; a directory that all ranks see.
  std::filesystem::path directory = ".";
  double timeout_s = 30;  ///< for all ranks to come, and of each call
};

/// All ranks of a job, each connected with rank 0: enough to agree and to gather results. Every
/// call is collective; throws CommError naming ranks and hosts that are missing or were lost. A
/// world of one opens no socket.
class RankStar {
 public:
  /// Rank 0 listens on the given port, or on a free one that it writes to a file; ranks of another
  /// job are turned away. Throws CommError: port busy, nobody listens, ranks missing (named).
  static RankStar join(const RankEnv& ranks, const StarOptions& options);

  int rank() const { return rank_; }
  int world() const { return static_cast<int>(hosts_.size()); }
  const std::vector<std::string>& hosts() const { return hosts_; }  ///< by rank
  /// The address of this rank that its peers reach: that of the way to rank 0.
  const std::string& own_address() const { return own_address_; }

  /// By rank, on every rank.
  std::vector<std::string> all_gather(const std::string& text);
  /// Rank 0's text, on every rank.
  std::string broadcast(const std::string& text);
  void barrier() { all_gather(""); }
  /// Every rank says why it cannot go on, or nothing. Throws CommError on all of them, with the
  /// ranks' texts, if any cannot.
  void agree(const std::string& failure);
  void set_timeout(double seconds) { timeout_s_ = seconds; }

 private:
  void host(const RankEnv& ranks, const StarOptions& options);
  void visit(const RankEnv& ranks, const StarOptions& options);
  void greet(TcpSocket caller, const RankEnv& ranks);
  std::string missing() const;

  int rank_ = 0;
  double timeout_s_ = 30;
  std::vector<std::string> hosts_;
  std::string own_address_ = "127.0.0.1";
  std::vector<TcpSocket> peers_;  ///< of rank 0, by rank; else one: rank 0
};

}  // namespace mm::probe
