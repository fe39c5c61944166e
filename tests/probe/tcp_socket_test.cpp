#include "lib/probe/tcp_socket.h"

#include <doctest/doctest.h>

#include <functional>
#include <thread>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "tests/probe/comm_error.h"

using namespace mm::probe;
using mm::probe::test::error_of;

TEST_CASE("tcp: texts of every size arrive whole and in order") {
  const TcpSocket listener = TcpSocket::listen("127.0.0.1", 0);
  std::vector<std::string> got;
  std::thread other([&] {
    const TcpSocket caller = listener.accept(10);
    for (int i = 0; i < 3; ++i) got.push_back(caller.receive_text(10));
    caller.send_text("done", 10);
  });
  const TcpSocket socket =
      TcpSocket::connect("127.0.0.1", listener.port(), "127.0.0.1", 10, "peer");
  const std::string big(3'000'000, 'x');
  socket.send_text("", 10);
  socket.send_text("one", 10);
  socket.send_text(big, 10);
  CHECK(socket.receive_text(10) == "done");
  other.join();
  CHECK(got == std::vector<std::string>{"", "one", big});
  CHECK(socket.own_address() == "127.0.0.1");
  CHECK(socket.peer_address() == "127.0.0.1");
}

TEST_CASE(
    "tcp: silence, a closed end, a false length and a busy port are named within their time") {
  const TcpSocket listener = TcpSocket::listen("127.0.0.1", 0);
  const int port = listener.port();
  CHECK(error_of([&] { TcpSocket::listen("127.0.0.1", port); }).starts_with("port "));
  CHECK(error_of([&] { static_cast<void>(listener.accept(0.05)); }) ==
        "listener: no connection in time");
  const TcpSocket socket = TcpSocket::connect("localhost", port, "", 10, "rank 3");
  const double start_s = mm::system_clock().monotonic_s();
  CHECK(error_of([&] { socket.receive_text(0.1); }) == "rank 3: no answer in time");
  CHECK(mm::system_clock().monotonic_s() - start_s < 2);
  {
    const TcpSocket caller = listener.accept(10);
    const uint64_t lie = ~uint64_t{0};
    caller.send(std::as_bytes(std::span(&lie, 1)), 10);
    CHECK(error_of([&] { socket.receive_text(10); }).find("at most 67108864") != std::string::npos);
  }
  CHECK(error_of([&] { socket.receive_text(10); }) == "rank 3: closed the connection");
}

TEST_CASE("tcp: names that do not resolve and addresses that are not ours") {
  CHECK(error_of([] { resolve("no-such-host.invalid"); }).starts_with("no-such-host.invalid: "));
  CHECK(resolve("127.0.0.1") == "127.0.0.1");
  CHECK(error_of([] {
          TcpSocket::connect("127.0.0.1", 9, "203.0.113.7", 0.1, "peer");
        }).starts_with("peer: cannot leave by 203.0.113.7"));
  CHECK(error_of([] { TcpSocket::listen("no address", 0); }) == "no address: not an IPv4 address");
}

TEST_CASE("tcp: a connection over loopback sends nothing again; a closed socket tells 0") {
  const TcpSocket listener = TcpSocket::listen("127.0.0.1", 0);
  const TcpSocket socket = TcpSocket::connect("127.0.0.1", listener.port(), "", 10, "peer");
  const TcpSocket caller = listener.accept(10);
  socket.send_text("x", 10);
  CHECK(caller.receive_text(10) == "x");
  CHECK(socket.retransmits() == 0);
  CHECK(TcpSocket().retransmits() == 0);
}
