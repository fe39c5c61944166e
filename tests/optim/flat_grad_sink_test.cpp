#include "lib/optim/flat_grad_sink.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/dist/thread_group.h"
#include "tests/optim/toy_params.h"

namespace mm::optim {
namespace {

std::vector<bool> all_but(model::ParamId frozen) {
  std::vector<bool> flags(toy_model().params.size(), true);
  flags[static_cast<size_t>(frozen)] = false;
  return flags;
}

}  // namespace

TEST_CASE("bf16 contributions add up in fp32") {
  const model::Model model = toy_model();
  FlatGradSink sink(model, all_but(kUnused), {});
  sink.zero();
  for (int i = 0; i < 300; ++i) sink.add(kNorm, at::ones({3}, at::kBFloat16));
  CHECK(sink.gradient(kNorm).eq(300).all().item<bool>());  // bf16 alone would stop at 256
  CHECK(sink.contributions(kNorm) == 300);
}

TEST_CASE(
    "a parameter without contribution has gradient zero, also after a step in which it had one") {
  const model::Model model = toy_model();
  FlatGradSink sink(model, all_but(kUnused), {.bucket_bytes = 64});
  for (int step = 0; step < 2; ++step) {
    sink.zero();
    sink.add(kHead, at::full({2, 3}, 1.5));
    if (step == 0) sink.add(kEmbed, at::ones({11, 3}));
    sink.add(kProjector, at::Tensor());  // a rank without pictures
    CHECK(sink.gradient(kHead).eq(1.5).all().item<bool>());
    CHECK(sink.gradient(kEmbed).eq(step == 0 ? 1 : 0).all().item<bool>());
    CHECK(sink.gradient(kProjector).eq(0).all().item<bool>());
    CHECK(sink.contributions(kProjector) == 1);
    CHECK(sink.contributions(kPatch) == 0);
  }
}

TEST_CASE("gradients are views into their bucket, so a reduced bucket is a reduced gradient") {
  const model::Model model = toy_model();
  dist::run_thread_ranks(2, {.timeout = std::chrono::seconds(20)}, [&](dist::Group& group) {
    FlatGradSink sink(model, all_but(kUnused),
                      {.bucket_bytes = 1 << 20, .accumulate = at::kDouble});
    sink.zero();
    sink.add(kPatch, at::full({4, 3}, group.rank() + 1.0));
    if (group.rank() == 0) sink.add(kEmbed, at::ones({11, 3}));
    for (const Bucket& bucket : sink.buckets()) group.all_reduce_sum(bucket.flat);
    REQUIRE(sink.gradient(kPatch).eq(3).all().item<bool>());
    REQUIRE(sink.gradient(kEmbed).eq(1).all().item<bool>());
    REQUIRE(sink.gradient(kHead).eq(0).all().item<bool>());
  });
}

TEST_CASE("frozen parameters have no gradient and take none, shapes must agree") {
  const model::Model model = toy_model();
  FlatGradSink sink(model, all_but(kHead), {});
  CHECK_FALSE(sink.gradient(kHead).defined());
  CHECK_THROWS_AS(sink.add(kHead, at::ones({2, 3})), InternalError);
  CHECK_THROWS_AS(sink.add(kEmbed, at::ones({3, 11})), InternalError);
}

}  // namespace mm::optim
