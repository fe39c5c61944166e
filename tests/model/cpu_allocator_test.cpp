#include "lib/model/cpu_allocator.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lib/model/cross_entropy.h"

using namespace mm::model;

TEST_CASE("install_cpu_allocator: tensors are counted, freed memory serves the next tensor") {
  install_cpu_allocator(256 << 20);
  const int64_t before = cpu_allocator()->counts().live_bytes;
  at::Tensor x = at::ones({1 << 20}, at::kFloat);
  CHECK(cpu_allocator()->counts().live_bytes - before == 4 << 20);
  const void* place = x.data_ptr();
  x.reset();
  CHECK(cpu_allocator()->counts().live_bytes == before);
  x = at::zeros({1 << 20}, at::kFloat);
  CHECK(x.data_ptr() == place);
  CHECK(x.sum().item<float>() == 0);
}

TEST_CASE("linear_cross_entropy in training never holds the logits of all rows") {
  install_cpu_allocator(256 << 20);
  constexpr int64_t kRows = 512, kVocab = 40000, kWidth = 16;
  const int64_t logits_bytes = kRows * kVocab * 4;
  const at::Tensor hidden = at::randn({kRows, kWidth}).requires_grad_(),
                   weight = at::randn({kVocab, kWidth}).requires_grad_(),
                   targets = at::arange(kRows, at::kLong);
  const auto peak_of = [&](const auto& loss_of) {
    const int64_t before = cpu_allocator()->counts().live_bytes;
    cpu_allocator()->reset_peak();
    torch::autograd::grad({loss_of()}, {hidden, weight});
    return cpu_allocator()->counts().peak_live_bytes - before;
  };
  const int64_t chunk_elements = 1 << 20;
  CHECK(peak_of([&] { return linear_cross_entropy(hidden, weight, targets, chunk_elements); }) <
        logits_bytes / 4);
  // The plain loss does, so the count would show it.
  CHECK(peak_of([&] { return linear_cross_entropy_reference(hidden, weight, targets); }) >
        logits_bytes);
}
