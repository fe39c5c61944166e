#include "lib/image/prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/image/bucket_fit.h"
#include "lib/image/row_reader.h"
#include "lib/image/tiling.h"

namespace mm::image {
namespace {

constexpr int32_t kRowsAtATime = 16;

// How the picture goes through a RowResizer: laid on `placement.canvas`, resized, cropped.
struct Route {
  Placement placement;
  ResizePlan plan;
};

Route route_of(Size in, const Preparation& p) {
  const Size square{p.side, p.side};
  Route route{{in, {0, 0, in.width, in.height}},
              {in, square, {0, 0, p.side, p.side}, p.filter, p.order}};
  if (p.geometry == Geometry::kPad) {
    route.placement = square_placement(in);
    route.plan.in = route.placement.canvas;
  } else if (p.geometry == Geometry::kCrop) {
    route.plan.out = shortest_edge_size(in, p.side);
    route.plan.crop = centre_crop(route.plan.out, square);
  } else if (p.geometry == Geometry::kBuckets) {
    const BucketFit fit = fit_bucket(in, p.buckets);
    route.plan.out = fit.scaled;
    route.plan.crop = fit.crop;
  }
  return route;
}

// Rows of the canvas, 16 at a time, with the margins already in the pad colour.
class Canvas {
 public:
  Canvas(const Route& route, Colour colour)
      : placement_(route.placement), blank_(pad_row(colour)), block_(blank_.size() * kRowsAtATime) {
    for (int32_t r = 0; r < kRowsAtATime; ++r)
      std::copy(blank_.begin(), blank_.end(), block_.begin() + ptrdiff_t(blank_.size()) * r);
    narrow_.resize(size_t{3} * placement_.inner.width * kRowsAtATime);
  }

  std::optional<Failure> stream(RowReader& reader, RowResizer& resizer) {
    const Box& inner = placement_.inner;
    for (int32_t y = 0; y < inner.top; ++y) resizer.push(blank_.data(), 1);
    for (int32_t y = 0; y < inner.height; y += kRowsAtATime) {
      const int32_t count = std::min(kRowsAtATime, inner.height - y);
      if (auto failure = read(reader, count)) return failure;
      resizer.push(block_.data(), count);
    }
    for (int32_t y = inner.top + inner.height; y < placement_.canvas.height; ++y)
      resizer.push(blank_.data(), 1);
    return std::nullopt;
  }

 private:
  std::vector<uint8_t> pad_row(Colour colour) const {
    std::vector<uint8_t> row;
    for (int32_t x = 0; x < placement_.canvas.width; ++x)
      row.insert(row.end(), {colour.r, colour.g, colour.b});
    return row;
  }

  std::optional<Failure> read(RowReader& reader, int32_t count) {
    const Box& inner = placement_.inner;
    if (inner.width == placement_.canvas.width) return reader.read(block_.data(), count);
    const size_t bytes = size_t{3} * inner.width;
    if (auto failure = reader.read(narrow_.data(), count)) return failure;
    for (int32_t r = 0; r < count; ++r) {
      std::copy_n(narrow_.data() + bytes * r, bytes,
                  block_.data() + blank_.size() * r + size_t{3} * inner.left);
    }
    return std::nullopt;
  }

  Placement placement_;
  std::vector<uint8_t> blank_, block_, narrow_;
};

// A long thin picture inside the limits makes a square that is not.
std::optional<Failure> oversized_canvas(Size in, const Preparation& preparation,
                                        const Limits& limits) {
  const uint64_t side = std::max(in.width, in.height);
  if (preparation.geometry != Geometry::kPad || side * side <= limits.max_pixels)
    return std::nullopt;
  return Failure{"too_large",
                 fmt::format("{} x {} padded to a square has {} pixels; the limit max_pixels is {}",
                             in.width, in.height, side * side, limits.max_pixels)};
}

Result<Decoded> decode_then_prepare(std::span<const std::byte> file, const Preparation& preparation,
                                    const DecodeOptions& options) {
  auto decoded = decode(file, options);
  if (decoded) decoded->image = prepare_tiles(decoded->image, preparation);
  return decoded;
}

}  // namespace

Result<Decoded> decode_prepared(std::span<const std::byte> file, const Preparation& preparation,
                                const DecodeOptions& options) {
  auto header = probe_for(file, options);
  if (!header) return header.failure();
  if (auto failure = oversized_canvas(header->stored, preparation, options.limits)) return *failure;
  // A turned picture must be whole before it is turned; resizing first would give other bytes.
  const bool turned = options.orient == Orient::kApply && header->orientation != 1;
  const bool streams =
      preparation.geometry == Geometry::kCrop || preparation.geometry == Geometry::kPad ||
      preparation.geometry == Geometry::kSquash || preparation.geometry == Geometry::kBuckets;
  if (turned || !streams) return decode_then_prepare(file, preparation, options);
  auto reader = open_rows(file, *header, options);
  if (!reader) return reader.failure();
  const Route route = route_of(header->stored, preparation);
  RowResizer resizer(route.plan);
  Decoded out;
  out.header = *header;
  add_header_notes(*header, out.notes);
  if (auto failure = Canvas(route, preparation.pad_colour).stream(**reader, resizer))
    return *failure;
  if (auto failure = (*reader)->finish(out)) return *failure;
  out.image = resizer.finish();
  return out;
}

}  // namespace mm::image
