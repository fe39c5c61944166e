#include "lib/dist/recording_group.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <thread>

#include "lib/dist/thread_group.h"

namespace mm::dist {

TEST_CASE("every call is noted with its operation, size, dtype and root") {
  RecordingGroup group("data", 1, 3);
  at::Tensor out = at::zeros({6}, at::kDouble), part = at::zeros({2}, at::kDouble);
  group.all_reduce_sum(at::zeros({5}));
  group.all_reduce_max(at::zeros({1}, at::kBFloat16));
  group.all_gather(out, at::full({2}, 4.0, at::kDouble));
  group.reduce_scatter_sum(part, out);
  group.broadcast(at::zeros({7}), 2);
  CHECK(group.all_gather_bytes("ab") == std::vector<std::string>(3, "ab"));
  group.barrier();
  CHECK((group.calls() == std::vector<RecordedCall>{{"all_reduce_sum", 5, at::kFloat, -1},
                                                    {"all_reduce_max", 1, at::kBFloat16, -1},
                                                    {"all_gather", 2, at::kDouble, -1},
                                                    {"reduce_scatter_sum", 6, at::kDouble, -1},
                                                    {"broadcast", 7, at::kFloat, 2},
                                                    {"all_gather_bytes", 2, at::kByte, -1},
                                                    {"barrier", 0, at::kByte, -1}}));
  CHECK(out.eq(4).all().item<bool>());
  CHECK(part.eq(4).all().item<bool>());
  group.clear();
  CHECK(group.calls().empty());
}

TEST_CASE("with an inner group the calls go through") {
  auto groups = make_thread_groups(2);
  std::vector<RecordingGroup> recorders;
  for (auto& group : groups) recorders.emplace_back(std::move(group));
  at::Tensor a = at::full({2}, 1.0), b = at::full({2}, 2.0);
  std::thread other([&] { recorders[1].all_reduce_sum(b); });
  recorders[0].all_reduce_sum(a);
  other.join();
  CHECK(a.eq(3).all().item<bool>());
  CHECK((recorders[0].calls() == recorders[1].calls()));
  CHECK(recorders[1].rank() == 1);
}

}  // namespace mm::dist
