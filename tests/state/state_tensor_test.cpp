#include "lib/state/state_tensor.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.h"

using namespace mm::state;

TEST_CASE("assign_writers: every tensor has one writer, loads are even, all ranks agree") {
  std::vector<StateTensor> tensors;
  for (int i = 0; i < 20; ++i) tensors.push_back({std::to_string(i), at::zeros({i % 5 + 1, 100})});
  for (int ranks : {1, 2, 3, 8}) {
    const std::vector<int> writer = assign_writers(tensors, ranks);
    CHECK(writer == assign_writers(tensors, ranks));
    std::vector<size_t> load(static_cast<size_t>(ranks), 0);
    for (size_t i = 0; i < tensors.size(); ++i)
      load.at(static_cast<size_t>(writer[i])) += tensors[i].value.nbytes();
    // The greedy rule is never further apart than one tensor.
    CHECK(*std::max_element(load.begin(), load.end()) -
              *std::min_element(load.begin(), load.end()) <=
          5 * 100 * sizeof(float));
  }
}

TEST_CASE("disk_dtype: what a training state holds, and nothing else") {
  CHECK(disk_dtype(at::zeros({1}, at::kFloat)) == mm::ckpt::DType::kF32);
  CHECK(disk_dtype(at::zeros({1}, at::kDouble)) == mm::ckpt::DType::kF64);
  CHECK_THROWS_AS(disk_dtype(at::zeros({1}, at::kBool)), mm::InternalError);
}

TEST_CASE("tensor_bytes: a view that is not contiguous is refused") {
  const at::Tensor tensor = at::arange(6, at::kFloat).view({2, 3});
  CHECK(tensor_bytes(tensor).size() == 24);
  CHECK_THROWS_AS(tensor_bytes(tensor.t()), mm::InternalError);
}
