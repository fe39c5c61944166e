// Every backend against a plain loop: one suite for single, threads and Gloo groups.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/random.h"
#include "lib/dist/group.h"
#include "tests/dist/backends.h"

namespace mm::dist {
namespace {

/// What rank `rank` brings: values that do not add exactly.
at::Tensor input(int rank, int64_t elements, at::ScalarType dtype) {
  const Philox draws = Philox(7, "collectives").child(static_cast<uint64_t>(rank));
  at::Tensor values = at::empty({elements}, at::kDouble);
  for (int64_t i = 0; i < elements; ++i) {
    values.data_ptr<double>()[i] = draws.normal(static_cast<uint64_t>(i)) * 3.7;
  }
  return values.to(dtype);
}

/// ((r0 + r1) + r2) + ..., halves in fp32 and rounded once.
at::Tensor plain_sum(int ranks, int64_t elements, at::ScalarType dtype) {
  const bool half = dtype == at::kBFloat16;
  at::Tensor sum = input(0, elements, dtype).to(half ? at::kFloat : dtype);
  for (int r = 1; r < ranks; ++r) sum = sum + input(r, elements, dtype).to(sum.scalar_type());
  return sum.to(dtype);
}

const std::vector<at::ScalarType> kDtypes = {at::kDouble, at::kFloat, at::kBFloat16};
const std::vector<int64_t> kSizes = {0, 1, 2, 7, 64, 1001};

}  // namespace

TEST_CASE("all_reduce_sum equals the plain sum in rank order, to the bit, on every backend") {
  for_each_backend([](Group& group) {
    for (const at::ScalarType dtype : kDtypes) {
      for (const int64_t elements : kSizes) {
        at::Tensor tensor = input(group.rank(), elements, dtype);
        group.all_reduce_sum(tensor);
        REQUIRE_MESSAGE(tensor.equal(plain_sum(group.size(), elements, dtype)), group.name(), " ",
                        elements);
      }
    }
  });
}

TEST_CASE("all_reduce_sum works in place on a two-dimensional view of a larger buffer") {
  for_each_backend([](Group& group) {
    const at::Tensor buffer = at::full({4, 3}, group.rank() + 1.0, at::kFloat);
    group.all_reduce_sum(buffer.narrow(0, 1, 2));
    const double total = group.size() * (group.size() + 1) / 2.0;
    REQUIRE(buffer[0].eq(group.rank() + 1.0).all().item<bool>());
    REQUIRE(buffer[1].eq(total).all().item<bool>());
    REQUIRE(buffer[2].eq(total).all().item<bool>());
    REQUIRE(buffer[3].eq(group.rank() + 1.0).all().item<bool>());
  });
}

TEST_CASE("the bits of a sum do not depend on how the buffer is cut into buckets") {
  for_each_backend([](Group& group) {
    at::Tensor whole = input(group.rank(), 1000, at::kFloat);
    const at::Tensor cut = whole.clone();
    group.all_reduce_sum(whole);
    for (int64_t start = 0, length = 1; start < 1000;
         start += length, length = std::min<int64_t>(length * 3, 1000 - start)) {
      group.all_reduce_sum(cut.narrow(0, start, std::min(length, 1000 - start)));
    }
    REQUIRE(whole.equal(cut));
  });
}

TEST_CASE("all_reduce_max gives the largest value and keeps NaN") {
  for_each_backend([](Group& group) {
    at::Tensor tensor = at::full({3}, static_cast<double>(group.rank()), at::kFloat);
    tensor[1] = -tensor[1];
    if (group.rank() == group.size() - 1) tensor[2] = NAN;
    group.all_reduce_max(tensor);
    REQUIRE(tensor[0].item<float>() == group.size() - 1);
    REQUIRE(tensor[1].item<float>() == 0.0F);
    REQUIRE(std::isnan(tensor[2].item<float>()));
  });
}

TEST_CASE("reduce_scatter_sum gives rank r the sum of everybody's r-th part") {
  for_each_backend([](Group& group) {
    for (const at::ScalarType dtype : kDtypes) {
      for (const int64_t part : {0, 1, 5}) {
        at::Tensor out = at::empty({part}, dtype);
        group.reduce_scatter_sum(out, input(group.rank(), part * group.size(), dtype));
        const at::Tensor want = plain_sum(group.size(), part * group.size(), dtype);
        REQUIRE(out.equal(want.narrow(0, group.rank() * part, part)));
      }
    }
  });
}

TEST_CASE("all_gather puts the ranks' tensors one after another") {
  for_each_backend([](Group& group) {
    for (const int64_t part : {0, 1, 5}) {
      at::Tensor out = at::empty({part * group.size()}, at::kBFloat16);
      group.all_gather(out, input(group.rank(), part, at::kBFloat16));
      for (int r = 0; r < group.size(); ++r) {
        REQUIRE(out.narrow(0, r * part, part).equal(input(r, part, at::kBFloat16)));
      }
    }
  });
}

TEST_CASE("broadcast copies the root's tensor, whichever rank that is") {
  for_each_backend([](Group& group) {
    for (int root = 0; root < group.size(); ++root) {
      at::Tensor tensor = input(group.rank(), 9, at::kDouble);
      group.broadcast(tensor, root);
      REQUIRE(tensor.equal(input(root, 9, at::kDouble)));
    }
  });
}

TEST_CASE("all_gather_bytes takes strings of any sizes, zero bytes and empty ones too") {
  for_each_backend([](Group& group) {
    const auto text = [](int rank) {
      return std::string(static_cast<size_t>(rank) * 3, static_cast<char>(rank));
    };
    const std::vector<std::string> all = group.all_gather_bytes(text(group.rank()));
    REQUIRE(all.size() == static_cast<size_t>(group.size()));
    for (int r = 0; r < group.size(); ++r) REQUIRE(all[static_cast<size_t>(r)] == text(r));
    group.barrier();
  });
}

TEST_CASE("int64 counts add exactly") {
  for_each_backend([](Group& group) {
    at::Tensor count = at::full({1}, int64_t{1} << 60, at::kLong);
    count.add_(group.rank());
    group.all_reduce_sum(count);
    const int64_t n = group.size();
    REQUIRE(count.item<int64_t>() == n * (int64_t{1} << 60) + n * (n - 1) / 2);
  });
}

}  // namespace mm::dist
