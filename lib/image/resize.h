#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "lib/image/image.h"

namespace mm::image {

/// Resampling filters with Pillow's meaning: all but nearest are widened by the shrink factor
/// (antialiasing).
enum class Filter { kNearest, kBox, kBilinear, kBicubic, kLanczos };

/// "nearest" "box" "bilinear" "bicubic" "lanczos"; nothing for other words.
std::optional<Filter> filter_from_name(std::string_view name);

/// Which pass comes first, across or down: each is rounded to bytes, so it shows in the result.
/// Across first, but for
enum class PassOrder {
  kPillow12,  ///< pictures over 100 times as high as wide that lose height; published
              ///< preprocessing was made with this rule
  kPillow13,  ///< pictures whose height loses over twice the pixels that the width loses
};
bool goes_down_first(Size in, Size out, PassOrder order);
/// "pillow12" "pillow13"; nothing for other words.
std::optional<PassOrder> pass_order_from_name(std::string_view name);

/// Resizes to the bit as Pillow does: weights in double, normalised by their running sum,
/// rounded to 22 fractional bits; first across, rounded and clipped to a byte, then down (or as
/// `order` says); a pass is skipped when its side is unchanged. Sides of both sizes > 0, else
/// InternalError. Plain loops, kept as the definition that `resize` must equal.
Image resize_reference(const Image& in, Size out, Filter filter,
                       PassOrder order = PassOrder::kPillow12);

/// The same bytes as `resize_reference`, by vector code.
Image resize(const Image& in, Size out, Filter filter, PassOrder order = PassOrder::kPillow12);

/// `resize` followed by a crop, computing only what the crop shows. `crop` lies inside `out`.
Image resize_crop(const Image& in, Size out, const Box& crop, Filter filter,
                  PassOrder order = PassOrder::kPillow12);

struct ResizeKernels;

/// What to make of a picture that arrives row by row.
struct ResizePlan {
  Size in;
  Size out;
  Box crop;  ///< inside `out`
  Filter filter = Filter::kBicubic;
  PassOrder order = PassOrder::kPillow12;
  const ResizeKernels* kernels = nullptr;  ///< null: the best that this CPU runs; all agree
};

/// Resizes a picture while its rows arrive, so that the full-size picture never exists: a decoder
/// pushes rows while they are in cache. The result equals `resize_crop`. One thread. Memory: rows
/// needed x crop width x 3; going down first, rows needed x columns needed x 3.
class RowResizer {
 public:
  explicit RowResizer(const ResizePlan& plan);
  ~RowResizer();
  RowResizer(RowResizer&&) noexcept;

  /// `rows` is [count, in.width, 3], the next rows from the top. All rows of the picture must be
  /// pushed.
  void push(const uint8_t* rows, int32_t count);
  /// The resized, cropped picture; call once, after the last row.
  Image finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mm::image
