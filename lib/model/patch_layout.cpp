#include "lib/model/patch_layout.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"

namespace mm::model {
namespace {

/// A picture in blocks.
struct Blocks {
  int64_t rows = 0, columns = 0;
};

Blocks blocks_of(const PictureShape& picture, const VisionConfig& config) {
  const int64_t cell = config.patch_size * config.merge;
  MM_CHECK(picture.tiles == 1 && picture.height > 0 && picture.height % cell == 0 &&
               picture.width > 0 && picture.width % cell == 0,
           "a picture of {} x {} pixels in {} tiles does not divide into blocks of {} pixels",
           picture.height, picture.width, picture.tiles, cell);
  return {picture.height / cell, picture.width / cell};
}

/// The layout as it grows.
struct Growing {
  std::vector<int64_t> order, row, column, windows{0}, pictures{0};
};

void append_window(const Blocks& blocks, int64_t top, int64_t left, const VisionConfig& config,
                   int64_t first_block, Growing& out) {
  const int64_t side = config.window / (config.patch_size * config.merge), merge = config.merge;
  for (int64_t y = top; y < std::min(top + side, blocks.rows); ++y) {
    for (int64_t x = left; x < std::min(left + side, blocks.columns); ++x) {
      out.order.push_back(first_block + y * blocks.columns + x);
      for (int64_t i = 0; i < merge * merge; ++i) {
        out.row.push_back(y * merge + i / merge);
        out.column.push_back(x * merge + i % merge);
      }
    }
  }
  out.windows.push_back(static_cast<int64_t>(out.row.size()));
}

at::Tensor to_tensor(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

// Sum of the squares of the pieces that `length` is cut into, `side` each but for the last.
double sum_of_squares(int64_t length, int64_t side) {
  return static_cast<double>(length / side * side * side + length % side * (length % side));
}

/// The positions of one sample after the other.
class Positions {
 public:
  explicit Positions(int64_t tokens) : out_(at::empty({3, tokens}, at::kLong)), tokens_(tokens) {}

  void begin_sample() { next_ = 0; }
  void text(int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i, ++next_) put(i, next_, next_, next_);
  }
  void picture(int64_t from, const Blocks& blocks) {
    int64_t at = from;
    for (int64_t y = 0; y < blocks.rows; ++y)
      for (int64_t x = 0; x < blocks.columns; ++x) put(at++, next_, next_ + y, next_ + x);
    next_ += std::max(blocks.rows, blocks.columns);
  }
  const at::Tensor& result() const { return out_; }

 private:
  void put(int64_t at, int64_t time, int64_t height, int64_t width) {
    auto* to = out_.mutable_data_ptr<int64_t>();
    to[at] = time;
    to[tokens_ + at] = height;
    to[2 * tokens_ + at] = width;
  }
  at::Tensor out_;
  int64_t tokens_, next_ = 0;
};

}  // namespace

PatchLayout layout_patches(std::span<const PictureShape> pictures, const VisionConfig& config) {
  Growing out;
  const int64_t side = config.window / (config.patch_size * config.merge);
  for (const PictureShape& picture : pictures) {
    const Blocks blocks = blocks_of(picture, config);
    const auto first = static_cast<int64_t>(out.order.size());
    for (int64_t top = 0; top < blocks.rows; top += side)
      for (int64_t left = 0; left < blocks.columns; left += side)
        append_window(blocks, top, left, config, first, out);
    out.pictures.push_back(static_cast<int64_t>(out.row.size()));
  }
  std::vector<int64_t> inverse(out.order.size());
  for (size_t i = 0; i < out.order.size(); ++i)
    inverse[static_cast<size_t>(out.order[i])] = static_cast<int64_t>(i);
  return {to_tensor(out.order),  to_tensor(inverse),      to_tensor(out.row),
          to_tensor(out.column), std::move(out.pictures), std::move(out.windows)};
}

void count_patches(std::span<const PictureShape> pictures, const VisionConfig& config,
                   Sizes& sizes) {
  const int64_t side = config.window / (config.patch_size * config.merge);
  const auto area = static_cast<double>(config.merge * config.merge);
  sizes.patch_rows = 0;
  sizes.picture_pairs = sizes.window_pairs = 0;
  for (const PictureShape& picture : pictures) {
    const Blocks blocks = blocks_of(picture, config);
    const double rows = static_cast<double>(blocks.rows * blocks.columns) * area;
    sizes.patch_rows += static_cast<int64_t>(rows);
    sizes.picture_pairs += rows * rows;
    // A window of h x w blocks has (h w area)^2 pairs, and all h meet all w.
    sizes.window_pairs +=
        sum_of_squares(blocks.rows, side) * sum_of_squares(blocks.columns, side) * area * area;
  }
}

at::Tensor cut_patches(const at::Tensor& pixels, int64_t patch, int64_t merge) {
  const int64_t channels = pixels.size(0), cell = patch * merge;
  const int64_t rows = pixels.size(1) / cell, columns = pixels.size(2) / cell;
  return pixels.reshape({channels, rows, merge, patch, columns, merge, patch})
      .permute({1, 4, 2, 5, 0, 3, 6})
      .reshape({rows * columns * merge * merge, channels * patch * patch});
}

at::Tensor axis_positions(std::span<const PictureShape> pictures,
                          std::span<const int64_t> image_token_index,
                          std::span<const int64_t> borders, const VisionConfig& config) {
  Positions positions(borders.back());
  size_t picture = 0, used = 0;
  for (size_t sample = 1; sample < borders.size(); ++sample) {
    positions.begin_sample();
    int64_t at = borders[sample - 1];
    while (picture < pictures.size()) {
      const PictureShape& p = pictures[picture];
      // Of a picture that no token stands for, nothing is to be placed.
      if (p.tokens > 0) {
        MM_CHECK(used + static_cast<size_t>(p.tokens) <= image_token_index.size(),
                 "{} placeholders for more pictures", image_token_index.size());
        const int64_t first = image_token_index[used];
        if (first >= borders[sample]) break;
        const Blocks blocks = blocks_of(p, config);
        MM_CHECK(blocks.rows * blocks.columns == p.tokens, "{} x {} blocks for {} tokens",
                 blocks.rows, blocks.columns, p.tokens);
        positions.text(at, first);
        positions.picture(first, blocks);
        at = first + p.tokens;
        used += static_cast<size_t>(p.tokens);
      }
      ++picture;
    }
    positions.text(at, borders[sample]);
  }
  return positions.result();
}

std::vector<int64_t> next_positions(const Batch& batch) {
  std::vector<int64_t> next;
  const at::Tensor last =
      batch.axis_positions.defined() ? std::get<0>(batch.axis_positions.max(0)) : batch.positions;
  for (size_t i = 1; i < batch.cu_seqlens.size(); ++i) {
    const int64_t begin = batch.cu_seqlens[i - 1], length = batch.cu_seqlens[i] - begin;
    next.push_back(length == 0 ? 0 : last.narrow(0, begin, length).max().item<int64_t>() + 1);
  }
  return next;
}

}  // namespace mm::model
