#include "lib/probe/tcp_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace mm::probe {
namespace {

constexpr uint64_t kMaxText = uint64_t{64} << 20;

std::string reason(int error) { return std::generic_category().message(error); }
double now_s() { return system_clock().monotonic_s(); }

sockaddr_in address_of(const std::string& numeric, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, numeric.c_str(), &address.sin_addr) != 1)
    throw CommError("{}: not an IPv4 address", numeric);
  return address;
}

std::string text_of(const sockaddr_in& address) {
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
  return text;
}

void wait_for(int fd, short events, double until_s, const std::string& peer, const char* what) {
  while (true) {
    const double left_s = std::max(0.0, until_s - now_s());
    struct pollfd waited {
      fd, events, 0
    };
    const int ready = ::poll(&waited, 1, static_cast<int>(std::ceil(left_s * 1000)));
    if (ready > 0) return;
    if (left_s == 0) throw CommError("{}: no {} in time", peer, what);
  }
}

int open_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) throw CommError("no socket: {}", reason(errno));
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  return fd;
}

// One attempt; the error, or 0.
int try_connect(const TcpSocket& socket, const sockaddr_in& to, double until_s) {
  if (::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0)
    return 0;
  if (errno != EINPROGRESS) return errno;
  wait_for(socket.descriptor(), POLLOUT, until_s, socket.peer(), "connection");
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

TcpSocket::TcpSocket(TcpSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), peer_(std::move(other.peer_)) {}

TcpSocket& TcpSocket::operator=(TcpSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(peer_, other.peer_);
  return *this;
}

TcpSocket::~TcpSocket() {
  if (fd_ >= 0) ::close(fd_);
}

TcpSocket TcpSocket::listen(const std::string& address, int port) {
  TcpSocket socket(open_socket(), "listener");
  const sockaddr_in at = address_of(address, port);
  if (::bind(socket.fd_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0)
    throw CommError("port {} of {}: {}", port, address, reason(errno));
  if (::listen(socket.fd_, 1024) != 0) throw CommError("port {}: {}", port, reason(errno));
  return socket;
}

TcpSocket TcpSocket::connect(const std::string& host, int port, const std::string& from,
                             double timeout_s, std::string peer) {
  const double until_s = now_s() + timeout_s;
  const sockaddr_in to = address_of(resolve(host), port);
  while (true) {
    TcpSocket socket(open_socket(), peer);
    if (!from.empty()) {
      const sockaddr_in at = address_of(from, 0);
      if (::bind(socket.fd_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0)
        throw CommError("{}: cannot leave by {}: {}", peer, from, reason(errno));
    }
    const int error = try_connect(socket, to, until_s);
    if (error == 0) return socket;
    if (now_s() >= until_s)
      throw CommError("{}: cannot connect to {} port {}{}{}: {}", peer, host, port,
                      from.empty() ? "" : " from ", from, reason(error));
    ::poll(nullptr, 0, 20);  // a peer that does not listen yet refuses at once
  }
}

int TcpSocket::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

std::string TcpSocket::own_address() const {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  return text_of(address);
}

std::string TcpSocket::peer_address() const {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  ::getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  return text_of(address);
}

int64_t TcpSocket::retransmits() const {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_total_retrans;
}

TcpSocket TcpSocket::accept(double timeout_s) const {
  const double until_s = now_s() + timeout_s;
  while (true) {
    wait_for(fd_, POLLIN, until_s, peer_, "connection");
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) continue;  // the caller gave up meanwhile
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return {fd, "caller"};
  }
}

void TcpSocket::send(std::span<const std::byte> bytes, double timeout_s) const {
  const double until_s = now_s() + timeout_s;
  while (!bytes.empty()) {
    const ssize_t put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put > 0) {
      bytes = bytes.subspan(static_cast<size_t>(put));
    } else if (errno == EAGAIN || errno == EINTR) {
      wait_for(fd_, POLLOUT, until_s, peer_, "room to send");
    } else {
      throw CommError("{}: {}", peer_, reason(errno));
    }
  }
}

void TcpSocket::receive(std::span<std::byte> bytes, double timeout_s) const {
  const double until_s = now_s() + timeout_s;
  while (!bytes.empty()) {
    const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (got == 0) {
      throw CommError("{}: closed the connection", peer_);
    } else if (errno == EAGAIN || errno == EINTR) {
      wait_for(fd_, POLLIN, until_s, peer_, "answer");
    } else {
      throw CommError("{}: {}", peer_, reason(errno));
    }
  }
}

void TcpSocket::send_text(const std::string& text, double timeout_s) const {
  const uint64_t bytes = text.size();
  send(std::as_bytes(std::span(&bytes, 1)), timeout_s);
  send(std::as_bytes(std::span(text.data(), text.size())), timeout_s);
}

std::string TcpSocket::receive_text(double timeout_s) const {
  uint64_t bytes = 0;
  receive(std::as_writable_bytes(std::span(&bytes, 1)), timeout_s);
  if (bytes > kMaxText)
    throw CommError("{}: a message of {} bytes, at most {}", peer_, bytes, kMaxText);
  std::string text;
  // Grown as it comes: a length alone must not take memory.
  for (size_t filled = 0; filled < bytes;) {
    const size_t part = std::min<size_t>(bytes - filled, size_t{1} << 20);
    text.resize(filled + part);
    receive(std::as_writable_bytes(std::span(text.data() + filled, part)), timeout_s);
    filled += part;
  }
  return text;
}

std::string resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0 || found == nullptr)
    throw CommError("{}: {}", host, error != 0 ? ::gai_strerror(error) : "no address");
  const std::string address = text_of(*reinterpret_cast<sockaddr_in*>(found->ai_addr));
  ::freeaddrinfo(found);
  return address;
}

}  // namespace mm::probe
