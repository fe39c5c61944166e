#pragma once
#include <string>

namespace mm {

/// A TCP socket that listens on 127.0.0.1, closed on exec unless handed on. Holding it is what
/// keeps a chosen port free for its user: a port that was only found free may be taken a moment
/// later.
class ListenSocket {
 public:
  /// `port` 0: any free one. Throws CommError naming the port if it is in use.
  static ListenSocket on_loopback(int port);
  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&& other) noexcept;
  ListenSocket(const ListenSocket&) = delete;
  ~ListenSocket();
  int port() const { return port_; }
  int descriptor() const { return fd_; }

 private:
  ListenSocket(int fd, int port) : fd_(fd), port_(port) {}
  int fd_;
  int port_;
};

}  // namespace mm
