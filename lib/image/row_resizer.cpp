#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/base/error.h"
#include "lib/image/resize.h"
#include "lib/image/resize_kernels.h"
#include "lib/image/resize_weights.h"

namespace mm::image {
namespace {

// Columns are padded so that the vertical kernel needs no tail.
size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

// One axis: either copied, or picked (nearest), or weighed. [first, end) are the inputs that
// matter.
struct Axis {
  bool weighed = false;
  WeightTable table;
  std::vector<int32_t> sources;
  int32_t first = 0, end = 0;
};

Axis plan_axis(int32_t in, int32_t out, int32_t from, int32_t count, Filter filter) {
  Axis axis;
  if (filter == Filter::kNearest || in == out) {
    axis.sources = nearest_sources(in, out, from, count);
    axis.first = axis.sources.front();
    axis.end = axis.sources.back() + 1;
    return axis;
  }
  axis.weighed = true;
  axis.table = make_weights(in, out, filter, from, count);
  axis.first = axis.table.taps.front().first;
  axis.end = axis.table.taps.back().first + axis.table.taps.back().count;
  return axis;
}

}  // namespace

// Rows [vertical.first, vertical.end) of the picture, already resized across, gather in `middle`.
struct RowResizer::State {
  ResizePlan plan;
  Axis horizontal, vertical;
  int32_t next_row = 0;
  size_t stride = 0;
  std::vector<uint8_t> middle;      // [vertical.end - vertical.first, stride]
  std::vector<uint8_t> lanes_in;    // [3 * columns that matter, 16]
  std::vector<uint8_t> lanes_out;   // [3 * crop.width, 16]
  std::vector<uint8_t> spare_rows;  // [16, in.width * 3] for a last block of fewer rows

  void weigh_block(const uint8_t* rows, uint8_t* out, size_t out_stride);
  void across(const uint8_t* rows, int32_t count);
  void pick(const uint8_t* rows, int32_t count);
};

RowResizer::RowResizer(const ResizePlan& plan) : state_(std::make_unique<State>()) {
  const auto& [in, out, crop, filter] = plan;
  MM_CHECK(in.width > 0 && in.height > 0 && crop.width > 0 && crop.height > 0,
           "resize {} x {} to a crop of {} x {}", in.width, in.height, crop.width, crop.height);
  MM_CHECK(crop.left >= 0 && crop.top >= 0 && crop.width <= out.width - crop.left &&
               crop.height <= out.height - crop.top,
           "crop {} x {} at {}, {} of {} x {}", crop.width, crop.height, crop.left, crop.top,
           out.width, out.height);
  State& s = *state_;
  s.plan = plan;
  s.horizontal = plan_axis(in.width, out.width, crop.left, crop.width, filter);
  s.vertical = plan_axis(in.height, out.height, crop.top, crop.height, filter);
  s.stride = padded(size_t{3} * crop.width);
  if (s.horizontal.weighed) {
    s.lanes_in.resize(size_t{3} * (s.horizontal.end - s.horizontal.first) * kLanes);
    s.lanes_out.resize(size_t{3} * crop.width * kLanes);
  }
}

RowResizer::~RowResizer() = default;
RowResizer::RowResizer(RowResizer&&) noexcept = default;

void RowResizer::State::weigh_block(const uint8_t* rows, uint8_t* out, size_t out_stride) {
  const size_t in_stride = size_t{3} * plan.in.width;
  rows_to_lanes(rows + size_t{3} * horizontal.first, in_stride, lanes_in.size() / kLanes,
                lanes_in.data());
  for (int32_t x = 0; x < plan.crop.width; ++x) {
    const Taps& taps = horizontal.table.taps[x];
    weigh_pixels(lanes_in.data() + size_t{3} * kLanes * (taps.first - horizontal.first),
                 horizontal.table.weights.data() + taps.weights_at, taps.count,
                 lanes_out.data() + size_t{3} * kLanes * x);
  }
  lanes_to_rows(lanes_out.data(), size_t{3} * plan.crop.width, out, out_stride);
}

// `middle` grows by whole blocks of 16 rows; rows beyond the last are spare.
void RowResizer::State::across(const uint8_t* rows, int32_t count) {
  const size_t in_stride = size_t{3} * plan.in.width;
  for (int32_t done = 0; done < count; done += kLanes) {
    const int32_t now = std::min<int32_t>(kLanes, count - done);
    const uint8_t* block = rows + in_stride * done;
    if (now < kLanes) {
      spare_rows.resize(in_stride * kLanes);
      std::copy_n(block, in_stride * now, spare_rows.data());
      block = spare_rows.data();
    }
    const size_t at = middle.size();
    middle.resize(at + stride * kLanes);
    weigh_block(block, middle.data() + at, stride);
    middle.resize(at + stride * now);
  }
}

void RowResizer::State::pick(const uint8_t* rows, int32_t count) {
  const size_t in_stride = size_t{3} * plan.in.width;
  for (int32_t r = 0; r < count; ++r) {
    const uint8_t* from = rows + in_stride * r;
    const size_t at = middle.size();
    middle.resize(at + stride);
    for (int32_t x = 0; x < plan.crop.width; ++x) {
      std::copy_n(from + size_t{3} * horizontal.sources[x], 3, middle.data() + at + size_t{3} * x);
    }
  }
}

void RowResizer::push(const uint8_t* rows, int32_t count) {
  State& s = *state_;
  MM_CHECK(count >= 0 && count <= s.plan.in.height - s.next_row, "{} rows pushed after {} of {}",
           count, s.next_row, s.plan.in.height);
  const int32_t from = std::max(s.next_row, s.vertical.first),
                end = std::min(s.next_row + count, s.vertical.end);
  if (from < end) {
    const uint8_t* needed = rows + size_t{3} * s.plan.in.width * (from - s.next_row);
    if (s.horizontal.weighed) {
      s.across(needed, end - from);
    } else {
      s.pick(needed, end - from);
    }
  }
  s.next_row += count;
}

Image RowResizer::finish() {
  State& s = *state_;
  MM_CHECK(s.next_row == s.plan.in.height, "finished after {} of {} rows", s.next_row,
           s.plan.in.height);
  Image out(s.plan.crop.width, s.plan.crop.height);
  std::vector<uint8_t> row(s.stride);
  for (int32_t y = 0; y < out.height; ++y) {
    if (s.vertical.weighed) {
      const Taps& taps = s.vertical.table.taps[y];
      weigh_rows(s.middle.data() + s.stride * (taps.first - s.vertical.first), s.stride,
                 s.vertical.table.weights.data() + taps.weights_at, taps.count, s.stride,
                 row.data());
      std::copy_n(row.data(), out.row_bytes(), out.row(y));
    } else {
      std::copy_n(s.middle.data() + s.stride * (s.vertical.sources[y] - s.vertical.first),
                  out.row_bytes(), out.row(y));
    }
  }
  return out;
}

}  // namespace mm::image
