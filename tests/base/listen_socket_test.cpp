#include "lib/base/listen_socket.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "lib/base/error.h"
#include "lib/base/random_hex.h"
#include "tests/base/temp_dir.h"

using mm::ListenSocket;

namespace {

bool can_connect(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int failed = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  ::close(fd);
  return failed == 0;
}

}  // namespace

TEST_CASE("ListenSocket: peers can connect before anybody accepts, and no more once it is gone") {
  int port = 0;
  {
    const ListenSocket socket = ListenSocket::on_loopback(0);
    port = socket.port();
    CHECK(port > 0);
    CHECK(can_connect(port));
    CHECK((::fcntl(socket.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK_FALSE(can_connect(port));
}

TEST_CASE("ListenSocket: a port can be taken again at once, but not while it is held") {
  ListenSocket first = ListenSocket::on_loopback(0);
  const int port = first.port();
  CHECK(mm::test::message_of<mm::CommError>([&] {
          ListenSocket::on_loopback(port);
        }).starts_with("port " + std::to_string(port) + " of 127.0.0.1: cannot listen: "));
  const ListenSocket moved = std::move(first);
  CHECK(moved.port() == port);
  CHECK(can_connect(port));
}

TEST_CASE("random_hex: as many bytes as asked, never the same") {
  CHECK(mm::random_hex(0).empty());
  const std::string one = mm::random_hex(8);
  CHECK(one.size() == 16);
  CHECK(one.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(one != mm::random_hex(8));
}
