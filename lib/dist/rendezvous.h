#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace mm::dist {

struct RendezvousOptions {
  std::string master_addr = "127.0.0.1";  ///< host of rank 0, as a name or address
  /// Where rank 0 listens. 0: any free port, which the other ranks learn from `port_file`.
  int port = 0;
  /// With port 0: rank 0 writes its port here, the others wait for it. On a file system that all
  /// ranks see; new for each start.
  std::string port_file;
  /// A listening socket of `port` that rank 0 inherits (a launcher that chose the port itself); -1:
  /// rank 0 opens its own.
  int listen_fd = -1;
  int rank = 0, world = 1;
  std::string job_id;  ///< ranks of other jobs or earlier starts are turned away
  std::chrono::milliseconds connect_timeout{25'000};  ///< to reach rank 0's store
  std::chrono::milliseconds timeout{60'000};          ///< for all ranks to come
};

/// The place where the ranks of a job find one another, and a small key-value store for as long as
/// rank 0 lives. Movable handle; calls of one object are serialised, so a blocked `get` delays the
/// rest.
class Rendezvous {
 public:
  struct Impl;

  /// Blocks until all `world` ranks are here. Rank 0 hosts the store. Throws CommError on time:
  /// port busy (named), master_addr not this host on rank 0, nobody listening, another job's store,
  /// a rank that came twice, or ranks missing (named). World 1 opens no socket.
  static Rendezvous join(const RendezvousOptions& options);
  /// For threads of one process: result[r] is rank r's. No sockets are opened before a Gloo group
  /// is made (loopback).
  static std::vector<Rendezvous> in_process(
      int world, std::chrono::milliseconds timeout = std::chrono::seconds(60));

  int rank() const;
  int world() const;
  /// Where the store listens; 0 without one.
  int port() const;

  void set(const std::string& key, const std::string& value);
  /// Waits for the key; throws CommError naming it when nobody sets it within `timeout`, or when
  /// rank 0 is lost.
  std::string get(const std::string& key, std::chrono::milliseconds timeout);
  bool has(const std::string& key);

  Impl& impl() const { return *impl_; }

 private:
  explicit Rendezvous(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace mm::dist
