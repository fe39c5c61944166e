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
size_t padded(size_t bytes) { return (bytes + kWideColumns - 1) / kWideColumns * kWideColumns; }

// The quads of one output, and where their packed weights begin.
struct QuadTaps {
  int32_t first = 0;  // input, counted from Axis::first
  int32_t quads = 0;
  size_t weights_at = 0;
};

// One axis: either copied, or picked (nearest), or weighed. [first, end) are the inputs that
// matter.
struct Axis {
  bool weighed = false;
  std::vector<QuadTaps> taps;
  std::vector<uint8_t> weights;
  std::vector<int32_t> sources;
  int32_t first = 0, end = 0;
};

// `aligned`: an output's first input is a multiple of four, since pixels lie in quads.
void pack_weights(const WeightTable& table, const ResizeKernels& kernels, bool aligned,
                  Axis& axis) {
  for (const Taps& taps : table.taps) {
    const int32_t offset = taps.first - axis.first, lead = aligned ? offset % kQuad : 0;
    std::vector<int32_t> padded_taps(lead);
    const auto from = table.weights.begin() + static_cast<ptrdiff_t>(taps.weights_at);
    padded_taps.insert(padded_taps.end(), from, from + taps.count);
    padded_taps.resize((padded_taps.size() + kQuad - 1) / kQuad * kQuad);
    const auto quads = static_cast<int32_t>(padded_taps.size() / kQuad);
    const size_t at = axis.weights.size();
    axis.weights.resize(at + kernels.packed_quad_bytes * quads);
    for (int32_t q = 0; q < quads; ++q)
      kernels.pack_quad(padded_taps.data() + kQuad * q,
                        axis.weights.data() + at + kernels.packed_quad_bytes * q);
    axis.taps.push_back({offset - lead, quads, at});
  }
}

struct AxisPlan {
  int32_t in = 0, out = 0;
  int32_t from = 0, count = 0;  // outputs that are wanted
  bool aligned = false;
};

Axis plan_axis(const AxisPlan& plan, Filter filter, const ResizeKernels& kernels) {
  Axis axis;
  if (filter == Filter::kNearest || plan.in == plan.out) {
    axis.sources = nearest_sources(plan.in, plan.out, plan.from, plan.count);
    axis.first = axis.sources.front();
    axis.end = axis.sources.back() + 1;
    return axis;
  }
  axis.weighed = true;
  const WeightTable table = make_weights(plan.in, plan.out, filter, plan.from, plan.count);
  axis.first = table.taps.front().first;
  axis.end = table.taps.back().first + table.taps.back().count;
  pack_weights(table, kernels, plan.aligned, axis);
  return axis;
}

}  // namespace

// Across first: rows [vertical.first, vertical.end), already resized across, gather in `middle`.
// Down first: the columns that matter of those rows gather there as they came.
struct RowResizer::State {
  ResizePlan plan;
  const ResizeKernels* kernels = nullptr;
  bool down_first = false;
  Axis horizontal, vertical;
  int32_t next_row = 0;
  size_t stride = 0;
  std::vector<uint8_t> middle;      // [vertical.end - vertical.first, stride]
  std::vector<uint8_t> quads;       // 16 rows of the columns that matter
  std::vector<uint8_t> lanes_out;   // [3 * crop.width, 16]
  std::vector<uint8_t> spare_rows;  // [16, in stride] for a last block of fewer rows

  int32_t columns() const { return horizontal.end - horizontal.first; }
  void weigh_block(const uint8_t* rows, size_t in_stride, uint8_t* out, size_t out_stride);
  void across(const uint8_t* rows, size_t in_stride, int32_t count, std::vector<uint8_t>& out,
              size_t out_stride);
  void keep(const uint8_t* rows, size_t in_stride, int32_t count);
  std::vector<uint8_t> down();
};

RowResizer::RowResizer(const ResizePlan& plan) : state_(std::make_unique<State>()) {
  const auto& [in, out, crop, filter, order, kernels] = plan;
  MM_CHECK(in.width > 0 && in.height > 0 && crop.width > 0 && crop.height > 0,
           "resize {} x {} to a crop of {} x {}", in.width, in.height, crop.width, crop.height);
  MM_CHECK(crop.left >= 0 && crop.top >= 0 && crop.width <= out.width - crop.left &&
               crop.height <= out.height - crop.top,
           "crop {} x {} at {}, {} of {} x {}", crop.width, crop.height, crop.left, crop.top,
           out.width, out.height);
  State& s = *state_;
  s.plan = plan;
  s.kernels = kernels != nullptr ? kernels : usable_kernels().front();
  s.horizontal = plan_axis({in.width, out.width, crop.left, crop.width, true}, filter, *s.kernels);
  s.vertical = plan_axis({in.height, out.height, crop.top, crop.height, false}, filter, *s.kernels);
  s.down_first = s.horizontal.weighed && s.vertical.weighed && goes_down_first(in, out, order);
  s.stride = padded(size_t{3} * (s.down_first ? s.columns() : crop.width));
  if (!s.horizontal.weighed) return;
  s.quads.resize(kQuadBytes * ((s.columns() + kQuad - 1) / kQuad));
  s.lanes_out.resize(size_t{3} * crop.width * kLanes);
}

RowResizer::~RowResizer() = default;
RowResizer::RowResizer(RowResizer&&) noexcept = default;

// `rows` begin at column horizontal.first.
void RowResizer::State::weigh_block(const uint8_t* rows, size_t in_stride, uint8_t* out,
                                    size_t out_stride) {
  kernels->rows_to_quads(rows, in_stride, columns(), quads.data());
  for (int32_t x = 0; x < plan.crop.width; ++x) {
    const QuadTaps& taps = horizontal.taps[x];
    kernels->weigh_quads(quads.data() + kQuadBytes * (taps.first / kQuad),
                         horizontal.weights.data() + taps.weights_at, taps.quads,
                         lanes_out.data() + size_t{3} * kLanes * x);
  }
  lanes_to_rows(lanes_out.data(), size_t{3} * plan.crop.width, out, out_stride);
}

// `out` grows by whole blocks of 16 rows; rows beyond the last are spare.
void RowResizer::State::across(const uint8_t* rows, size_t in_stride, int32_t count,
                               std::vector<uint8_t>& out, size_t out_stride) {
  const size_t row_bytes = size_t{3} * columns();
  for (int32_t done = 0; done < count; done += kLanes) {
    const int32_t now = std::min<int32_t>(kLanes, count - done);
    const uint8_t* block = rows + in_stride * done;
    size_t block_stride = in_stride;
    if (now < kLanes) {
      block_stride = row_bytes;
      spare_rows.resize(row_bytes * kLanes);
      for (int32_t r = 0; r < now; ++r)
        std::copy_n(block + in_stride * r, row_bytes, spare_rows.data() + row_bytes * r);
      block = spare_rows.data();
    }
    const size_t at = out.size();
    out.resize(at + out_stride * kLanes);
    weigh_block(block, block_stride, out.data() + at, out_stride);
    out.resize(at + out_stride * now);
  }
}

// Rows as they came: all columns that matter, or the picked ones.
void RowResizer::State::keep(const uint8_t* rows, size_t in_stride, int32_t count) {
  for (int32_t r = 0; r < count; ++r) {
    const uint8_t* from = rows + in_stride * r;
    const size_t at = middle.size();
    middle.resize(at + stride);
    if (horizontal.weighed) {
      std::copy_n(from, size_t{3} * columns(), middle.data() + at);
      continue;
    }
    for (int32_t x = 0; x < plan.crop.width; ++x) {
      std::copy_n(from + size_t{3} * (horizontal.sources[x] - horizontal.first), 3,
                  middle.data() + at + size_t{3} * x);
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
    const size_t in_stride = size_t{3} * s.plan.in.width;
    const uint8_t* needed = rows + in_stride * (from - s.next_row) + size_t{3} * s.horizontal.first;
    if (s.horizontal.weighed && !s.down_first) {
      s.across(needed, in_stride, end - from, s.middle, s.stride);
    } else {
      s.keep(needed, in_stride, end - from);
    }
  }
  s.next_row += count;
}

// `middle` to [crop.height, stride]. Weights are padded to whole quads, so up to three rows past
// the last are read, with weight 0.
std::vector<uint8_t> RowResizer::State::down() {
  middle.resize(middle.size() + stride * (kQuad - 1));
  std::vector<uint8_t> out(stride * plan.crop.height);
  for (int32_t y = 0; y < plan.crop.height; ++y) {
    uint8_t* row = out.data() + stride * y;
    if (vertical.weighed) {
      const QuadTaps& taps = vertical.taps[y];
      kernels->weigh_rows(middle.data() + stride * taps.first, stride,
                          vertical.weights.data() + taps.weights_at, taps.quads, stride, row);
    } else {
      std::copy_n(middle.data() + stride * (vertical.sources[y] - vertical.first), stride, row);
    }
  }
  return out;
}

Image RowResizer::finish() {
  State& s = *state_;
  MM_CHECK(s.next_row == s.plan.in.height, "finished after {} of {} rows", s.next_row,
           s.plan.in.height);
  Image out(s.plan.crop.width, s.plan.crop.height);
  std::vector<uint8_t> rows = s.down();
  size_t stride = s.stride;
  if (s.down_first) {
    stride = out.row_bytes();
    std::vector<uint8_t> resized;
    s.across(rows.data(), s.stride, out.height, resized, stride);
    rows = std::move(resized);
  }
  for (int32_t y = 0; y < out.height; ++y)
    std::copy_n(rows.data() + stride * y, out.row_bytes(), out.row(y));
  return out;
}

}  // namespace mm::image
