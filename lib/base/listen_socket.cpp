#include "lib/base/listen_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "lib/base/error.h"

namespace mm {
namespace {

constexpr int kBacklog = 1024;

[[noreturn]] void throw_busy(int port, int code) {
  const char* advice = code == EADDRINUSE ? "; choose another MASTER_PORT or unset it" : "";
  throw CommError("port {} of 127.0.0.1: cannot listen: {}{}", port,
                  std::generic_category().message(code), advice);
}

}  // namespace

ListenSocket ListenSocket::on_loopback(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw_busy(port, errno);
  ListenSocket socket(fd, port);
  // A port in TIME_WAIT of an earlier start may be used again; one that somebody listens on may
  // not.
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, raw, sizeof(address)) != 0 || ::listen(fd, kBacklog) != 0) {
    throw_busy(port, errno);
  }
  socklen_t size = sizeof(address);
  if (::getsockname(fd, raw, &size) != 0) throw_busy(port, errno);
  socket.port_ = ntohs(address.sin_port);
  return socket;
}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

ListenSocket& ListenSocket::operator=(ListenSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(port_, other.port_);
  return *this;
}

ListenSocket::~ListenSocket() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace mm
