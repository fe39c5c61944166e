#include "lib/probe/rank_star.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/json.h"

namespace mm::probe {
namespace {

constexpr double kGreetingSeconds = 5;

double now_s() { return system_clock().monotonic_s(); }

// A job's own file; job ids hold only letters, digits and punctuation that names may have.
std::filesystem::path port_file(const RankEnv& ranks, const StarOptions& options) {
  std::string id = ranks.job_id;
  std::replace(id.begin(), id.end(), '/', '_');
  return options.directory / (".mmprobe-" + id + ".port");
}

// Waits for rank 0's file.
int told_port(const std::filesystem::path& file, double until_s) {
  while (now_s() < until_s) {
    if (std::filesystem::exists(file)) {
      const int port = std::atoi(read_file(file, 64).c_str());
      if (port > 0 && port < 65536) return port;
    }
    ::poll(nullptr, 0, 50);  // a shared file system shows it late
  }
  throw CommError(
      "{}: rank 0 did not write its port there; set --dir to a directory that all ranks "
      "see, or MASTER_PORT",
      file.string());
}

class RemovedFile {
 public:
  explicit RemovedFile(std::filesystem::path path) : path_(std::move(path)) {}
  RemovedFile(const RemovedFile&) = delete;
  ~RemovedFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

RankStar RankStar::join(const RankEnv& ranks, const StarOptions& options) {
  RankStar star;
  star.rank_ = ranks.rank;
  star.timeout_s_ = options.timeout_s;
  star.hosts_.assign(static_cast<size_t>(ranks.world), "");
  star.hosts_[static_cast<size_t>(ranks.rank)] = ranks.host;
  if (ranks.world == 1) return star;
  if (ranks.rank == 0) {
    star.host(ranks, options);
  } else {
    star.visit(ranks, options);
  }
  star.hosts_ = star.all_gather(ranks.host);
  return star;
}

void RankStar::host(const RankEnv& ranks, const StarOptions& options) {
  const TcpSocket listener = ranks.listen_fd >= 0 ? TcpSocket::adopt(ranks.listen_fd)
                                                  : TcpSocket::listen("0.0.0.0", ranks.master_port);
  std::filesystem::path file;
  if (ranks.master_port == 0) {
    file = port_file(ranks, options);
    write_file_atomic(file, fmt::format("{}\n", listener.port()));
  }
  const RemovedFile removed(file);
  own_address_ = ranks.master_addr == "127.0.0.1" ? "127.0.0.1" : resolve(ranks.master_addr);
  peers_.resize(hosts_.size());
  const double until_s = now_s() + options.timeout_s;
  while (!missing().empty()) {
    if (now_s() >= until_s)
      throw CommError("ranks {} did not come within {} s", missing(), options.timeout_s);
    try {
      greet(listener.accept(std::min(1.0, options.timeout_s)), ranks);
    } catch (const CommError&) {
      continue;  // nobody yet, or a stranger that left: the deadline above decides
    }
  }
  for (size_t rank = 1; rank < peers_.size(); ++rank) {
    // A machine's own name may mean its loopback, which no other machine comes by.
    if (own_address_.starts_with("127.")) own_address_ = peers_[rank].own_address();
    peers_[rank].send_text("welcome", timeout_s_);
  }
}

void RankStar::greet(TcpSocket caller, const RankEnv& ranks) {
  const std::string greeting = caller.receive_text(kGreetingSeconds);
  // The text comes from whoever found the port.
  const Json json = Json::parse(greeting, nullptr, false);
  if (!json.is_object() || json.value("job", "") != ranks.job_id || !json.contains("rank") ||
      !json["rank"].is_number_integer()) {
    caller.send_text("this is another job", kGreetingSeconds);
    return;
  }
  const int64_t rank = json["rank"].get<int64_t>();
  if (rank < 1 || rank >= static_cast<int64_t>(peers_.size()) || peers_[size_t(rank)]) return;
  caller.name_peer(fmt::format("rank {} on {}", rank, json.value("host", "?")));
  peers_[static_cast<size_t>(rank)] = std::move(caller);
}

void RankStar::visit(const RankEnv& ranks, const StarOptions& options) {
  const double until_s = now_s() + options.timeout_s;
  const int port =
      ranks.master_port != 0 ? ranks.master_port : told_port(port_file(ranks, options), until_s);
  TcpSocket socket = TcpSocket::connect(ranks.master_addr, port, "", until_s - now_s(),
                                        fmt::format("rank 0 on {}", ranks.master_addr));
  const Json greeting = {{"job", ranks.job_id}, {"rank", ranks.rank}, {"host", ranks.host}};
  socket.send_text(greeting.dump(), options.timeout_s);
  const std::string answer = socket.receive_text(std::max(1.0, until_s - now_s()) + 1);
  if (answer != "welcome") throw CommError("rank 0 on {}: {}", ranks.master_addr, answer);
  own_address_ = socket.own_address();
  peers_.push_back(std::move(socket));
}

std::string RankStar::missing() const {
  std::string text;
  for (size_t rank = 1; rank < peers_.size(); ++rank) {
    if (!peers_[rank]) text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  }
  return text;
}

std::vector<std::string> RankStar::all_gather(const std::string& text) {
  if (world() == 1) return {text};
  std::vector<std::string> all(hosts_.size());
  if (rank_ != 0) {
    peers_[0].send_text(text, timeout_s_);
    // Rank 0 may wait its whole timeout for another rank first.
    for (std::string& one : all) one = peers_[0].receive_text(timeout_s_ * 1.5 + 5);
    return all;
  }
  all[0] = text;
  for (size_t rank = 1; rank < peers_.size(); ++rank)
    all[rank] = peers_[rank].receive_text(timeout_s_);
  for (size_t rank = 1; rank < peers_.size(); ++rank)
    for (const std::string& one : all) peers_[rank].send_text(one, timeout_s_);
  return all;
}

void RankStar::agree(const std::string& failure) {
  std::string all;
  std::set<std::string> said;  // ranks often say the same; each text once
  for (const std::string& text : all_gather(failure)) {
    if (!text.empty() && said.insert(text).second) all += (all.empty() ? "" : "; ") + text;
  }
  if (!all.empty()) throw CommError("{}", all);
}

std::string RankStar::broadcast(const std::string& text) {
  return all_gather(rank_ == 0 ? text : "").front();
}

}  // namespace mm::probe
