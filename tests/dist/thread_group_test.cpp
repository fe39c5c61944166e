#include "lib/dist/thread_group.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "lib/base/error.h"

namespace mm::dist {
namespace {

using Clock = std::chrono::steady_clock;

/// Message of the CommError that `call` throws; empty if none.
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

}  // namespace

TEST_CASE("a rank that does not come gives CommError on time, naming it, the group and the call") {
  auto groups = make_thread_groups(3, {.name = "data", .timeout = std::chrono::milliseconds(200)});
  const auto start = Clock::now();
  std::string other;
  std::thread rank1([&] { other = comm_error([&] { groups[1]->barrier(); }); });
  const std::string error = comm_error([&] { groups[0]->barrier(); });
  rank1.join();
  CHECK(Clock::now() - start < std::chrono::seconds(5));
  CHECK(error == "group \"data\" (rank 0 of 3): barrier #1: rank 2 did not come within 200 ms");
  CHECK(contains(other, "rank 2 did not come"));
}

TEST_CASE("a failed group stays failed") {
  auto groups = make_thread_groups(2, {.timeout = std::chrono::milliseconds(50)});
  CHECK(contains(comm_error([&] { groups[0]->barrier(); }), "did not come"));
  CHECK(contains(comm_error([&] { groups[1]->barrier(); }), "did not come"));
}

TEST_CASE(
    "a rank that throws frees the others at once, and its own exception is the one that counts") {
  std::string other;
  const auto run = [&] {
    run_thread_ranks(2, {.timeout = std::chrono::seconds(30)}, [&](Group& group) {
      if (group.rank() == 0) throw UsageError("wrong key");
      other = comm_error([&] { group.barrier(); });
    });
  };
  CHECK_THROWS_WITH_AS(run(), "wrong key", UsageError);
  CHECK(contains(other, "rank 0 has left the group"));
}

TEST_CASE("abort from another thread frees a blocked call with its reason") {
  auto groups = make_thread_groups(2, {.timeout = std::chrono::seconds(30)});
  std::string error;
  std::thread blocked([&] { error = comm_error([&] { groups[0]->barrier(); }); });
  groups[1]->abort("rank 1 lost its disk");
  blocked.join();
  CHECK(contains(error, "rank 1 lost its disk"));
}

TEST_CASE(
    "different calls, sizes or dtypes are found and named on every rank instead of adding "
    "wrongly") {
  const auto mismatch = [](const std::function<void(Group&)>& first,
                           const std::function<void(Group&)>& second) {
    std::vector<std::string> errors(2);
    run_thread_ranks(2, {.timeout = std::chrono::seconds(30)}, [&](Group& group) {
      errors[static_cast<size_t>(group.rank())] =
          comm_error([&] { (group.rank() == 0 ? first : second)(group); });
    });
    CHECK(contains(errors[1], "rank 0 calls"));
    return errors[0];
  };
  const auto sum = [](int64_t elements, at::ScalarType dtype) {
    return [=](Group& group) { group.all_reduce_sum(at::zeros({elements}, dtype)); };
  };
  CHECK(contains(mismatch(sum(3, at::kFloat), sum(4, at::kFloat)),
                 "all_reduce_sum of 3 x Float, rank 1 calls all_reduce_sum of 4 x Float"));
  CHECK(contains(mismatch(sum(3, at::kFloat), sum(3, at::kInt)),
                 "rank 1 calls all_reduce_sum of 3 x Int"));
  CHECK(contains(mismatch(sum(3, at::kFloat), [](Group& group) { group.barrier(); }),
                 "rank 1 calls barrier"));
  CHECK(contains(mismatch([](Group& g) { g.broadcast(at::zeros({1}), 0); },
                          [](Group& g) { g.broadcast(at::zeros({1}), 1); }),
                 "from rank 1"));
}

TEST_CASE("C30: four ranks with 3, 1, 0 and 2 tokens give the gradient over all tokens, -20/6") {
  // Loss per token (w - x)^2 / 2 at w = 0; each rank adds its tokens' gradients, divided by the
  // global count of 6.
  const std::vector<std::vector<double>> tokens = {{1, 2, 3}, {8}, {}, {5, 1}};
  run_thread_ranks(4, {.timeout = std::chrono::seconds(20)}, [&](Group& group) {
    const std::vector<double>& mine = tokens[static_cast<size_t>(group.rank())];
    at::Tensor count = at::full({1}, static_cast<double>(mine.size()), at::kDouble);
    group.all_reduce_sum(count);
    at::Tensor gradient = at::zeros({1}, at::kDouble);
    for (const double x : mine) gradient.sub_(x / count.item<double>());
    group.all_reduce_sum(gradient);
    REQUIRE(gradient.item<double>() == doctest::Approx(-20.0 / 6).epsilon(1e-12));
  });
}

}  // namespace mm::dist
