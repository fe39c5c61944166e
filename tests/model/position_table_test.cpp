#include "lib/model/position_table.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <thread>

#include "lib/base/error.h"
#include "lib/model/initial_draw.h"

using namespace mm;
using namespace mm::model;

namespace {

void check_row(const at::Tensor& table, int64_t row, const std::vector<double>& want,
               int64_t from = 0) {
  for (size_t i = 0; i < want.size(); ++i) {
    CAPTURE(row);
    CAPTURE(i);
    CHECK(table[row][from + static_cast<int64_t>(i)].item<double>() ==
          doctest::Approx(want[i]).epsilon(2e-6));
  }
}

}  // namespace

TEST_CASE("C51: the first half of a position is the column, the second the row") {
  const at::Tensor table = sincos_positions(8, 2, 3, {});
  REQUIRE(table.sizes() == at::IntArrayRef({6, 8}));
  check_row(table, 0, {0, 0, 1, 1, 0, 0, 1, 1});
  check_row(table, 1, {.841471, .010000, .540302, .999950, 0, 0, 1, 1});
  check_row(table, 2, {.909297, .019999, -.416147, .999800});
  check_row(table, 3, {0, 0, 1, 1, .841471, .010000, .540302, .999950});
}

TEST_CASE("C51: positions of a larger model are scaled: index / (grid / base) / scale") {
  const at::Tensor table = sincos_positions(8, 64, 64, {.base = 64, .scale = 2});
  check_row(table, 1, {.479426, .005000, .877583, .999988});
  // Twice the patches over the same base stand half as far apart.
  CHECK(at::allclose(sincos_positions(8, 4, 6, {.base = 3}).index({at::tensor({1})}),
                     sincos_positions(8, 1, 2, {.scale = 2}).index({at::tensor({1})})));
}

TEST_CASE("tables of sizes that a run meets are made once, in the dtype that is asked for") {
  PositionTables tables(8, {.base = 4});
  const at::Tensor wide = at::empty({0}, at::kDouble);
  const at::Tensor first = tables.get(2, 3, wide);
  CHECK(at::equal(first, sincos_positions(8, 2, 3, {.base = 4})));
  CHECK((tables.get(2, 3, at::empty({0}, at::kBFloat16)).scalar_type() == at::kBFloat16));
  CHECK(tables.get(2, 3, wide).data_ptr() == first.data_ptr());
  std::thread other([&] { tables.get(5, 5, wide); });
  CHECK(tables.get(5, 5, wide).size(0) == 25);
  other.join();
}

TEST_CASE("a stored table is cropped at the centre; one that is too small is refused") {
  const at::Tensor table = at::arange(25, at::kDouble).view({1, 25, 1});
  const at::Tensor crop = centre_crop(table, 2, 3);
  CHECK(at::equal(crop.flatten(), at::tensor({6., 7., 8., 11., 12., 13.}, at::kDouble)));
  CHECK(at::equal(centre_crop(table, 5, 5), table[0]));
  CHECK_THROWS_WITH_AS(centre_crop(table, 6, 2), doctest::Contains("6 x 2"), DataError);
}

TEST_CASE("a table parameter begins as the grid of sines and cosines") {
  const ParamSpec spec{
      .name = "pos_embed", .shape = {1, 9, 8}, .init = Init::kSincosGrid, .init_std = 0.5};
  const at::Tensor drawn = InitialDraw(spec, 1).whole()[0];
  CHECK(at::allclose(drawn.to(at::kDouble), sincos_positions(8, 3, 3, {.scale = 2}), 1e-6, 1e-7));
  const ParamSpec oblong{.name = "x", .shape = {1, 8, 8}, .init = Init::kSincosGrid};
  CHECK_THROWS_AS(InitialDraw(oblong, 1), InternalError);
}

TEST_CASE("a convolution as a matrix: Xavier of first dimension by all others") {
  const ParamSpec spec{.name = "proj", .shape = {30, 3, 2, 2}, .init = Init::kXavierMatrix};
  const at::Tensor drawn = InitialDraw(spec, 1).whole();
  const double bound = std::sqrt(6.0 / (30 + 12));
  CHECK(drawn.abs().max().item<double>() <= bound);
  CHECK(drawn.abs().max().item<double>() > 0.97 * bound);
}
