#include "lib/dist/rendezvous.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "lib/base/error.h"

namespace mm::dist {
namespace {

using std::chrono::milliseconds;

std::string comm_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error.what();
  }
  return {};
}

/// A socket that listens on a free port of 127.0.0.1.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(listen(fd_, 16) == 0);
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() {
    if (fd_ >= 0) close(fd_);
  }
  Listener(const Listener&) = delete;
  int port() const { return port_; }
  /// The store that takes it over closes it.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
  int port_ = 0;
};

struct Directory {
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mm_place_XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::filesystem::path path;
};

RendezvousOptions quick(int rank, int world, const std::string& port_file) {
  return {.port_file = port_file,
          .rank = rank,
          .world = world,
          .job_id = "job",
          .connect_timeout = milliseconds(10'000),
          .timeout = milliseconds(10'000)};
}

/// Joins `world` ranks as threads and hands each its rendezvous.
void join_all(int world, const RendezvousOptions& options,
              const std::function<void(Rendezvous&)>& body) {
  std::vector<std::string> errors(static_cast<size_t>(world));
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r) {
    threads.emplace_back([&, r] {
      errors[static_cast<size_t>(r)] = comm_error([&] {
        RendezvousOptions mine = options;
        mine.rank = r;
        if (r != 0) mine.listen_fd = -1;
        Rendezvous place = Rendezvous::join(mine);
        body(place);
        place.set("done/" + std::to_string(r), "");
        for (int other = 0; r == 0 && other < world; ++other)
          place.get("done/" + std::to_string(other), milliseconds(10'000));
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK(error.empty());
}

}  // namespace

TEST_CASE("ranks meet on a free port through the port file and share keys") {
  const Directory directory;
  join_all(3, quick(0, 3, directory.file("port")), [](Rendezvous& place) {
    if (place.rank() == 1) place.set("color", "blue");
    REQUIRE(place.get("color", milliseconds(10'000)) == "blue");
    REQUIRE(place.has("color"));
    REQUIRE_FALSE(place.has("shape"));
    REQUIRE(place.port() > 0);
  });
}

TEST_CASE(
    "C60: jobs 1500 and 2500 start at once on one host, and job 1500 again after its first start") {
  const Directory directory;
  const auto start = [&](const std::string& job, const std::string& file) {
    RendezvousOptions options = quick(0, 2, directory.file(file));
    options.job_id = job;
    join_all(2, options, [](Rendezvous& place) { REQUIRE(place.world() == 2); });
  };
  std::thread other([&] { start("1500", "a"); });
  start("2500", "b");
  other.join();
  start("1500", "c");
}

TEST_CASE("C60: a given port that is busy is named on all ranks within the deadline") {
  const Listener busy;  // a stranger that accepts and never answers
  RendezvousOptions options = quick(0, 2, "");
  options.port = busy.port();
  options.connect_timeout = milliseconds(1500);
  const auto start = std::chrono::steady_clock::now();
  std::string other;
  std::thread rank1([&, options]() mutable {
    options.rank = 1;
    other = comm_error([&] { Rendezvous::join(options); });
  });
  const std::string error = comm_error([&] { Rendezvous::join(options); });
  rank1.join();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  CHECK(error.find("cannot listen on port " + std::to_string(busy.port())) != std::string::npos);
  CHECK(other.find("127.0.0.1:" + std::to_string(busy.port())) != std::string::npos);
}

TEST_CASE("C60: a master address that is not rank 0's host fails at once") {
  RendezvousOptions options = quick(0, 2, "");
  options.port = 29500;
  options.master_addr = "192.0.2.1";
  const std::string error = comm_error([&] { Rendezvous::join(options); });
  CHECK(error.find("MASTER_ADDR=192.0.2.1 is not an address of ") == 0);
}

TEST_CASE("a launcher's listening socket is taken over by rank 0") {
  Listener socket;
  RendezvousOptions options = quick(0, 2, "");
  options.port = socket.port();
  options.listen_fd = socket.release();
  join_all(2, options, [&](Rendezvous& place) { REQUIRE(place.port() == options.port); });
}

TEST_CASE(
    "a rank of another job or world size is turned away by name, and the job goes on without it") {
  const Directory directory;
  Listener socket;
  RendezvousOptions options = quick(0, 2, "");
  options.port = socket.port();
  options.listen_fd = socket.release();
  join_all(2, options, [&](Rendezvous& place) {
    if (place.rank() != 1) return;
    RendezvousOptions stray = quick(1, 2, "");
    stray.port = options.port;
    stray.job_id = "yesterday";
    REQUIRE(comm_error([&] { Rendezvous::join(stray); }).find("reached job \"job\" of 2 ranks") !=
            std::string::npos);
    stray.job_id = "job";
    stray.world = 3;
    REQUIRE(comm_error([&] {
              Rendezvous::join(stray);
            }).find("rank 1 of job \"job\" of 3 ranks reached") == 0);
    stray.world = 2;
    REQUIRE(comm_error([&] { Rendezvous::join(stray); }).find("came twice") != std::string::npos);
  });
}

TEST_CASE("ranks that do not come are named after the deadline") {
  const Directory directory;
  RendezvousOptions options = quick(0, 4, directory.file("port"));
  options.timeout = milliseconds(300);
  const std::string error = comm_error([&] { Rendezvous::join(options); });
  CHECK(error == "rank 0: rank 1, 2, 3 of job \"job\" of 4 ranks did not come within 300 ms");
}

TEST_CASE("rank 0 that never starts, or a port file of another job, ends on time") {
  const Directory directory;
  RendezvousOptions options = quick(1, 2, directory.file("port"));
  options.connect_timeout = milliseconds(200);
  CHECK(comm_error([&] { Rendezvous::join(options); }).find("did not write its port") !=
        std::string::npos);
}

TEST_CASE("waiting for a key ends at its deadline and names the key") {
  std::vector<Rendezvous> places = Rendezvous::in_process(1);
  CHECK(comm_error([&] {
          places[0].get("color", milliseconds(50));
        }).find("waited 50 ms for \"color\"") != std::string::npos);
}

TEST_CASE("impossible options are usage errors") {
  CHECK_THROWS_AS(Rendezvous::join({.rank = 2, .world = 2}), UsageError);
  CHECK_THROWS_AS(Rendezvous::join({.world = 0}), UsageError);
  CHECK_THROWS_AS(Rendezvous::join({.port = 70000, .world = 2}), UsageError);
  CHECK_THROWS_WITH_AS(Rendezvous::join({.port = 0, .world = 2}), doctest::Contains("no port file"),
                       UsageError);
}

}  // namespace mm::dist
