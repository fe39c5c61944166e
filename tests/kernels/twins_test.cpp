#include <doctest/doctest.h>

#include "tests/kernels/cuda_twins.h"

// Every fused op, forward and backward, against its double reference: the CPU twin, and the CUDA
// twin's own code with its threads played on the CPU. tests/kernels/device_check.cpp runs the same
// cases on a device.
using namespace mm::kernels;
using namespace mm::kernels::test;

namespace {

template <typename T>
void check_rms_norm(Shape shape, bool with_residual) {
  CAPTURE(shape.rows);
  CAPTURE(shape.cols);
  CAPTURE(with_residual);
  CHECK(rms_norm_error<T>({rms_norm_forward<T>, rms_norm_backward<T>}, shape, with_residual) <=
        kTolerance<T>);
  if constexpr (!std::is_same_v<T, double>)
    CHECK(rms_norm_error<T>(played_rms_norm<T>(), shape, with_residual) <= kTolerance<T>);
}

template <typename T>
void check_gates(int64_t count) {
  CHECK(swiglu_error<T>({swiglu_forward<T>, swiglu_backward<T>}, count) <= kTolerance<T>);
  CHECK(swiglu_error(played_swiglu<T>(), count) <= kTolerance<T>);
  CHECK(quick_gelu_error<T>({quick_gelu_forward<T>, quick_gelu_backward<T>}, count) <=
        kTolerance<T>);
  CHECK(quick_gelu_error(played_quick_gelu<T>(), count) <= kTolerance<T>);
  CHECK(gelu_tanh_error<T>({gelu_tanh_forward<T>, gelu_tanh_backward<T>}, count) <= kTolerance<T>);
  CHECK(gelu_tanh_error(played_gelu_tanh<T>(), count) <= kTolerance<T>);
}

struct AttentionCase {
  std::vector<int64_t> borders;
  int64_t window = 0;
  bool causal = true, played = true;  ///< threads played on the CPU are slow: short samples only
};

template <typename T>
void check_attention(const AttentionCase& c) {
  CAPTURE(c.borders.size());
  CAPTURE(c.window);
  auto shape = attention_shape(c.borders);
  shape.window = c.window;
  shape.causal = c.causal;
  CHECK(packed_attention_error<T>(cpu_packed_attention<T>(), shape, c.borders) <=
        2 * kTolerance<T>);
  if constexpr (!std::is_same_v<T, double>) {
    if (!c.played) return;
    CHECK(packed_attention_error<T>(played_packed_attention<T>(), shape, c.borders) <=
          2 * kTolerance<T>);
  }
}

}  // namespace

TEST_CASE(
    "rms_norm with and without a residual, forward and backward: all twins are the reference") {
  for (const Shape shape :
       {Shape{2, 3}, Shape{3, 15}, Shape{5, 16}, Shape{70, 33}, Shape{130, 300}}) {
    for (const bool with_residual : {false, true}) {
      check_rms_norm<double>(shape, with_residual);
      check_rms_norm<float>(shape, with_residual);
      check_rms_norm<Bf16>(shape, with_residual);
    }
  }
}

TEST_CASE("swiglu, quick_gelu and gelu_tanh, forward and backward: all twins are the reference") {
  for (const int64_t count : {1, 17, 1000, 2049}) {
    CAPTURE(count);
    CHECK(swiglu_error<double>({swiglu_forward<double>, swiglu_backward<double>}, count) <=
          kTolerance<double>);
    check_gates<float>(count);
    check_gates<Bf16>(count);
    CHECK(quick_gelu_error<double>({quick_gelu_forward<double>, quick_gelu_backward<double>},
                                   count) <= kTolerance<double>);
    CHECK(gelu_tanh_error<double>({gelu_tanh_forward<double>, gelu_tanh_backward<double>}, count) <=
          kTolerance<double>);
  }
}

TEST_CASE("gelu_tanh stays finite far from zero, forward and backward") {
  const std::vector<float> x{-1e30F, -1e13F, -12.0F, 12.0F, 1e6F, 1e13F}, one(6, 1.0F);
  std::vector<float> y(6), dx(6);
  gelu_tanh_forward<float>(6, x.data(), y.data());
  gelu_tanh_backward<float>(6, one.data(), x.data(), dx.data());
  for (size_t i = 0; i < 3; ++i) {
    CHECK(std::abs(y[i]) < 1e-6F);
    CHECK(std::abs(dx[i]) < 1e-30F);
    CHECK(y[i + 3] == x[i + 3]);
    CHECK(dx[i + 3] == 1.0F);
  }
}

TEST_CASE("the modulated norm and the gated sum of pictures: all twins are the reference") {
  for (const PictureRows& shape : {PictureRows{1, 1, 1, 1}, PictureRows{2, 3, 15, 90},
                                   PictureRows{3, 70, 33, 33}, PictureRows{2, 64, 300, 600}}) {
    CAPTURE(shape.rows);
    CAPTURE(shape.cols);
    CHECK(ada_norm_error(cpu_ada_norm<double>(), shape) <= kTolerance<double>);
    CHECK(ada_norm_error(cpu_ada_norm<float>(), shape) <= kTolerance<float>);
    CHECK(ada_norm_error(cpu_ada_norm<Bf16>(), shape) <= kTolerance<Bf16>);
    CHECK(ada_norm_error(played_ada_norm<float>(), shape) <= kTolerance<float>);
    CHECK(ada_norm_error(played_ada_norm<Bf16>(), shape) <= kTolerance<Bf16>);
  }
}

TEST_CASE("rope there and back, a row of angles a token: all twins are the reference") {
  for (const RopeShape shape : {RopeShape{1, 1, 1}, RopeShape{3, 2, 20}, RopeShape{40, 3, 32}}) {
    CAPTURE(shape.tokens);
    CHECK(rope_error<double>(rope<double>, shape) <= kTolerance<double>);
    CHECK(rope_error<float>(rope<float>, shape) <= kTolerance<float>);
    CHECK(rope_error<Bf16>(rope<Bf16>, shape) <= kTolerance<Bf16>);
    CHECK(rope_error(played_rope<float>(), shape) <= kTolerance<float>);
    CHECK(rope_error(played_rope<Bf16>(), shape) <= kTolerance<Bf16>);
  }
}

TEST_CASE(
    "cross_entropy_rows, loss and gradient, with and without weights: all twins are the "
    "reference") {
  for (const Shape shape : {Shape{1, 1}, Shape{2, 15}, Shape{3, 64}, Shape{9, 1001}}) {
    CAPTURE(shape.cols);
    for (const bool weights : {false, true}) {
      CHECK(cross_entropy_error<double>(cross_entropy_rows<double>, shape, weights) <=
            kTolerance<double>);
      CHECK(cross_entropy_error<float>(cross_entropy_rows<float>, shape, weights) <=
            kTolerance<float>);
      CHECK(cross_entropy_error<Bf16>(cross_entropy_rows<Bf16>, shape, weights) <=
            kTolerance<Bf16>);
      CHECK(cross_entropy_error(played_cross_entropy<float>(), shape, weights) <=
            kTolerance<float>);
      CHECK(cross_entropy_error(played_cross_entropy<Bf16>(), shape, weights) <= kTolerance<Bf16>);
    }
  }
}

TEST_CASE("adamw of three steps, the copy being the rounded master: all twins are the reference") {
  for (const int64_t count : {1, 31, 2000}) {
    CAPTURE(count);
    CHECK(adamw_error<double, double>(adamw<double, double>, count) <= kTolerance<double>);
    CHECK(adamw_error<float, float>(adamw<float, float>, count) <= kTolerance<float>);
    CHECK(adamw_error<float, Bf16>(adamw<float, Bf16>, count) <= kTolerance<float>);
    CHECK(adamw_error(played_adamw<float>(), count) <= kTolerance<float>);
    CHECK(adamw_error(played_adamw<Bf16>(), count) <= kTolerance<float>);
  }
}

TEST_CASE(
    "packed attention, forward and backward, windows and empty samples: all twins are the "
    "reference") {
  const std::vector<int64_t> several{0, 5, 5, 6, 11}, longer{0, 47, 48, 145, 395, 395};
  for (const AttentionCase& c :
       {AttentionCase{{0, 9}}, AttentionCase{several}, AttentionCase{several, 3},
        AttentionCase{several, 0, false}, AttentionCase{longer, 0, true, false},
        AttentionCase{longer, 70, true, false}, AttentionCase{longer, 0, false, false}}) {
    check_attention<double>(c);
    check_attention<float>(c);
    check_attention<Bf16>(c);
  }
}

TEST_CASE("packed attention: scores far apart give zeros and a finite sum") {
  const std::vector<int64_t> borders{0, 3};
  const PackedAttentionShape shape{.tokens = 3,
                                   .heads = 1,
                                   .kv_heads = 1,
                                   .head_size = 1,
                                   .samples = 1,
                                   .causal = false,
                                   .scale = 1};
  const std::vector<float> q{1, 1e4F, -1e4F}, k{300, 0, -300}, v{1, 2, 4};
  std::vector<float> out(3), lse(3);
  packed_attention_forward<float>(
      shape, {q.data(), k.data(), v.data(), borders.data(), out.data(), lse.data()}, {0, 1});
  CHECK(out == std::vector<float>{1, 1, 4});
  CHECK(lse == std::vector<float>{300, 3e6F, 3e6F});
}

TEST_CASE("cross_entropy_rows: far logits give zeros, not denormals, and huge ones stay finite") {
  const std::vector<float> logits{1e4F, 1e4F - 60, 1e4F - 80, -1e30F};
  const int64_t target = 0;
  float loss = 1;
  std::vector<float> d(4);
  cross_entropy_rows<float>({1, 4}, {.logits = logits.data(),
                                     .targets = &target,
                                     .weights = nullptr,
                                     .loss = &loss,
                                     .d_logits = d.data()});
  CHECK(loss == doctest::Approx(0).epsilon(1e-6));
  CHECK(d[1] > 0);
  CHECK(d[2] == 0);
  CHECK(d[3] == 0);
}

TEST_CASE("nothing to do touches nothing") {
  float guard = 7;
  swiglu_forward<float>(0, nullptr, nullptr, &guard);
  cross_entropy_rows<float>({0, 5}, {});
  adamw<float, float>(0, {}, {});
  rms_norm_forward<float>({0, 5}, {});
  modulated_norm_forward<float>({0, 4, 5, 5}, {});
  packed_attention_forward<float>({.kv_heads = 2}, {}, {0, 0});
  gated_add_backward<float>({3, 0, 5, 5}, {});
  CHECK(guard == 7);
}
