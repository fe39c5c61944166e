#include "lib/dist/gloo_group.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "lib/base/error.h"
#include "lib/dist/thread_group.h"

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

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Runs `body` on `ranks` threads, each with a Gloo group of its own.
void on_ranks(int ranks, const GlooOptions& options, const std::function<void(Group&)>& body) {
  const std::vector<Rendezvous> places = Rendezvous::in_process(ranks, std::chrono::seconds(20));
  run_thread_ranks(ranks, {.timeout = std::chrono::seconds(20)}, [&](Group& thread) {
    body(*make_gloo_group(places[static_cast<size_t>(thread.rank())], options));
  });
}

}  // namespace

TEST_CASE("a rank that comes too late gives CommError on time, and the group stays failed") {
  const auto start = std::chrono::steady_clock::now();
  on_ranks(2, {.name = "data", .timeout = milliseconds(400)}, [](Group& group) {
    if (group.rank() == 1) {
      // Comes to the first call; the second one ends when rank 0 has given up on the sum.
      comm_error([&] { group.barrier(), group.barrier(); });
      return;
    }
    group.barrier();
    const at::Tensor tensor = at::zeros({8});
    const std::string error = comm_error([&] { group.all_reduce_max(tensor); });
    REQUIRE(contains(error, "group \"data\" (rank 0 of 2): all_reduce_max #2: "));
    REQUIRE(contains(comm_error([&] { group.all_reduce_sum(tensor); }), "the group failed before"));
  });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(15));
}

TEST_CASE("a rank that never connects gives CommError on time") {
  const std::vector<Rendezvous> places = Rendezvous::in_process(2, milliseconds(400));
  const std::string error = comm_error(
      [&] { make_gloo_group(places[0], {.name = "data", .timeout = milliseconds(400)}); });
  CHECK(contains(error, "group \"data\" (rank 0 of 2): connect #0: "));
}

TEST_CASE("abort frees a blocked call with its reason") {
  std::string error;
  on_ranks(2, {.timeout = milliseconds(1000)}, [&](Group& group) {
    if (group.rank() == 1) {
      comm_error([&] { group.barrier(); });
      return;
    }
    std::thread aborter([&] { group.abort("stopped by the test"); });
    error = comm_error([&] { group.all_reduce_sum(at::zeros({4})); });
    aborter.join();
  });
  CHECK(contains(error, "stopped by the test"));
}

TEST_CASE("destroying a group frees the peer that waits for it, before any timeout") {
  const auto start = std::chrono::steady_clock::now();
  std::string error;
  on_ranks(2, {.timeout = std::chrono::seconds(60)}, [&](Group& group) {
    group.barrier();
    if (group.rank() == 0) error = comm_error([&] { group.all_reduce_sum(at::zeros({4})); });
  });
  CHECK(contains(error, "all_reduce_sum #2: "));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE("two groups of one rendezvous work at once from two threads, also under the same name") {
  const std::vector<Rendezvous> places = Rendezvous::in_process(2, std::chrono::seconds(20));
  run_thread_ranks(2, {.timeout = std::chrono::seconds(20)}, [&](Group& thread) {
    const Rendezvous& place = places[static_cast<size_t>(thread.rank())];
    const auto first = make_gloo_group(place), second = make_gloo_group(place);
    const auto add = [](Group& group, double value) {
      for (int i = 0; i < 20; ++i) {
        const at::Tensor tensor = at::full({100}, value);
        group.all_reduce_sum(tensor);
        REQUIRE(tensor.eq(2 * value).all().item<bool>());
      }
    };
    std::thread other([&] { add(*second, 3); });
    add(*first, 5);
    other.join();
  });
}

TEST_CASE("a world of one rank needs no sockets") {
  const auto group = make_gloo_group(Rendezvous::join({.world = 1}), {.name = "data"});
  CHECK(group->size() == 1);
  CHECK(group->name() == "data");
  CHECK(group->all_gather_bytes("x") == std::vector<std::string>{"x"});
}

}  // namespace mm::dist
