#include "lib/ckpt/element_box.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/random.h"

using namespace mm::ckpt;

namespace {

using Shape = std::vector<uint64_t>;

// Random draws in order.
class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed, "boxes") {}
  uint64_t below(uint64_t bound) { return random_.below(next_++, bound); }

 private:
  mm::Philox random_;
  uint64_t next_ = 0;
};

// Cuts a box into random parts: any such cut is a tiling, most are no grid.
void cut(const ElementBox& box, int depth, Draws& draws, std::vector<ElementBox>& out) {
  const size_t d = draws.below(box.shape.size());
  if (depth == 0 || box.shape[d] < 2) {
    out.push_back(box);
    return;
  }
  const uint64_t at = 1 + draws.below(box.shape[d] - 1);
  ElementBox low = box, high = box;
  low.shape[d] = at;
  high.offset[d] += at;
  high.shape[d] -= at;
  cut(low, depth - 1, draws, out);
  cut(high, depth - 1, draws, out);
}

// The definition itself: every element counted.
bool tiles_by_counting(const Shape& shape, const std::vector<ElementBox>& boxes) {
  std::vector<int> hits(shape[0] * shape[1] * shape[2], 0);
  for (const ElementBox& box : boxes) {
    for (uint64_t i = 0; i < box.shape[0]; ++i)
      for (uint64_t j = 0; j < box.shape[1]; ++j)
        for (uint64_t k = 0; k < box.shape[2]; ++k)
          ++hits[((box.offset[0] + i) * shape[1] + box.offset[1] + j) * shape[2] + box.offset[2] +
                 k];
  }
  return std::all_of(hits.begin(), hits.end(), [](int n) { return n == 1; });
}

}  // namespace

TEST_CASE(
    "tiling: random cuts of a box tile it, and the verdict on moved parts is that of counting "
    "elements") {
  const Shape shape = {6, 5, 7};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Draws draws(seed);
    std::vector<ElementBox> boxes;
    cut(whole_box(shape), 5, draws, boxes);
    CAPTURE(seed);
    CHECK_FALSE(tiling_problem(shape, boxes));
    // Move or resize one part within the tensor.
    ElementBox& victim = boxes[draws.below(boxes.size())];
    const size_t d = draws.below(3);
    victim.shape[d] = 1 + draws.below(shape[d]);
    victim.offset[d] = draws.below(shape[d] - victim.shape[d] + 1);
    CHECK(!tiling_problem(shape, boxes) == tiles_by_counting(shape, boxes));
  }
}

TEST_CASE("tiling: equal counts do not hide a hole behind an overlap") {
  // Two parts on the left, none on the lower right: four elements each way.
  const std::vector<ElementBox> boxes = {{{0, 0}, {2, 2}}, {{0, 0}, {2, 2}}};
  CHECK(tiling_problem(Shape{2, 4}, boxes) == "boxes [0:2, 0:2] and [0:2, 0:2] overlap");
}

TEST_CASE("tiling: each kind of problem is named") {
  const Shape shape = {4, 4};
  const auto problem = [&](std::vector<ElementBox> boxes) {
    return tiling_problem(shape, boxes).value_or("none");
  };
  CHECK(problem({}) == "16 of 16 elements are missing");
  CHECK(problem({{{0, 0}, {4, 3}}}) == "4 of 16 elements are missing");
  CHECK(problem({{{0, 0}, {4, 4}}, {{1, 1}, {1, 1}}}) == "boxes [0:4, 0:4] and [1:2, 1:2] overlap");
  CHECK(problem({{{0, 0}, {5, 4}}}) == "box [0:5, 0:4] reaches outside shape [4, 4]");
  CHECK(problem({{{~uint64_t{0}, 0}, {2, 4}}}).find("reaches outside") != std::string::npos);
  CHECK(problem({{{0}, {4}}}) == "box [0:4] has another rank than shape [4, 4]");
  CHECK(problem({{{0, 0}, {4, 4}}, {{0, 0}, {0, 4}}}) == "box [0:0, 0:4] is empty");
}

TEST_CASE("tiling: scalars and tensors without elements have one box, the whole") {
  CHECK_FALSE(tiling_problem(Shape{}, std::vector<ElementBox>{{{}, {}}}));
  CHECK(tiling_problem(Shape{}, {}));
  CHECK(tiling_problem(Shape{}, std::vector<ElementBox>{{{}, {}}, {{}, {}}}));
  CHECK_FALSE(tiling_problem(Shape{0, 3}, std::vector<ElementBox>{{{0, 0}, {0, 3}}}));
  CHECK(tiling_problem(Shape{0, 3}, {}));
  CHECK(tiling_problem(Shape{0, 3}, std::vector<ElementBox>{{{0, 0}, {0, 1}}}));
}

TEST_CASE("tiling: thousands of parts and hostile ranks are judged at once") {
  std::vector<ElementBox> rows;
  for (uint64_t i = 0; i < 20'000; ++i) rows.push_back({{i, 0}, {1, 8}});
  CHECK_FALSE(tiling_problem(Shape{20'000, 8}, rows));
  const Shape deep(60, 2);
  CHECK(tiling_problem(deep, std::vector<ElementBox>{{Shape(60, 0), Shape(60, 1)}}));
}
