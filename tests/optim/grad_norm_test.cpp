#include "lib/optim/grad_norm.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

#include "lib/model/initial_draw.h"
#include "lib/optim/flat_grad_sink.h"
#include "tests/optim/toy_params.h"

namespace mm::optim {
namespace {

const std::vector<bool> kAll(7, true);

/// A sink whose gradients are draws of a fixed seed.
FlatGradSink filled(const model::Model& model, const BucketOptions& options) {
  FlatGradSink sink(model, kAll, options);
  sink.zero();
  for (size_t i = 0; i < model.params.size(); ++i) {
    const auto id = static_cast<model::ParamId>(i);
    model::ParamSpec spec = model.params[i];
    spec.init = model::Init::kNormal;
    at::Tensor grad = at::empty(spec.shape, at::kDouble);
    model::InitialDraw(spec, 11).fill(grad);
    sink.add(id, grad);
  }
  return sink;
}

}  // namespace

TEST_CASE("the norm equals the plain double sum over all parameters") {
  const model::Model model = toy_model();
  const FlatGradSink sink = filled(model, {.accumulate = at::kDouble});
  double sum = 0;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const at::Tensor grad = sink.gradient(static_cast<model::ParamId>(i)).contiguous();
    for (int64_t k = 0; k < grad.numel(); ++k)
      sum += grad.data_ptr<double>()[k] * grad.data_ptr<double>()[k];
  }
  CHECK(grad_norm(sink.buckets()) == doctest::Approx(std::sqrt(sum)).epsilon(1e-14));
}

TEST_CASE("the norm has the same bits for every bucket size") {
  const model::Model model = toy_model();
  const double want = grad_norm(filled(model, {.bucket_bytes = 1}).buckets());
  for (const int64_t bytes : {13, 64, 200, 1 << 20})
    CHECK(grad_norm(filled(model, {.bucket_bytes = bytes}).buckets()) == want);
}

TEST_CASE("fp32 squares that overflow fp32 still give a finite norm, NaN and Inf come through") {
  const model::Model model = toy_model();
  FlatGradSink sink(model, kAll, {});
  sink.zero();
  CHECK(grad_norm(sink.buckets()) == 0.0);
  sink.gradient(kNorm).fill_(1e30);
  CHECK(grad_norm(sink.buckets()) == doctest::Approx(std::sqrt(3.0) * 1e30));
  sink.gradient(kHead)[1][2] = std::numeric_limits<double>::infinity();
  CHECK(std::isinf(grad_norm(sink.buckets())));
  sink.gradient(kHead)[1][1] = NAN;
  CHECK(std::isnan(grad_norm(sink.buckets())));
}

TEST_CASE("clipping scales by limit / (norm + 1e-6), never up, and not at all without a limit") {
  CHECK(clip_factor(2.0, 1.0) == 1.0 / (2.0 + 1e-6));
  CHECK(clip_factor(0.5, 1.0) == 1.0);
  CHECK(clip_factor(0.0, 1.0) == 1.0);
  CHECK(clip_factor(100.0, 0.0) == 1.0);
  const model::Model model = toy_model();
  const FlatGradSink sink = filled(model, {.accumulate = at::kDouble});
  const double norm = grad_norm(sink.buckets());
  scale_grads(sink.buckets(), clip_factor(norm, norm / 4));
  CHECK(grad_norm(sink.buckets()) == doctest::Approx(norm / 4).epsilon(1e-4));
}

TEST_CASE("part norms: each part's own, for every bucket size, their squares adding up") {
  const model::Model model = toy_model();
  const FlatGradSink sink = filled(model, {.accumulate = at::kDouble});
  std::array<double, model::kPartCount> sums{};
  for (size_t i = 0; i < model.params.size(); ++i) {
    const at::Tensor grad = sink.gradient(static_cast<model::ParamId>(i)).contiguous();
    for (int64_t k = 0; k < grad.numel(); ++k)
      sums[static_cast<size_t>(model.params[i].part)] +=
          grad.data_ptr<double>()[k] * grad.data_ptr<double>()[k];
  }
  const auto norms = part_norms(sink.buckets());
  for (size_t p = 0; p < norms.size(); ++p) {
    CHECK((norms[p] > 0) == (p <= static_cast<size_t>(model::Part::kLanguage)));
    CHECK(norms[p] == doctest::Approx(std::sqrt(sums[p])).epsilon(1e-13));
  }
  CHECK(total_norm(norms) == grad_norm(sink.buckets()));
  CHECK(part_norms(filled(model, {.bucket_bytes = 1, .accumulate = at::kDouble}).buckets()) ==
        norms);
}

}  // namespace mm::optim
