#include "lib/data/collate.h"

#include <algorithm>
#include <numeric>

#include "lib/base/error.h"

namespace mm::data {
namespace {

void append_targets(const SampleText& text, MicroBatch& batch) {
  const size_t first = batch.targets.size();
  batch.targets.resize(first + text.tokens.size(), kIgnore);
  for (const TokenSpan& span : text.trainable) {
    for (uint32_t i = std::max(span.begin, 1u); i < span.end; ++i) {
      batch.targets[first + i - 1] = text.tokens[i];
      ++batch.target_count;
    }
  }
}

void append_count(int32_t begin, int32_t count, std::vector<int32_t>& to) {
  const size_t before = to.size();
  to.resize(before + static_cast<size_t>(count));
  std::iota(to.begin() + static_cast<ptrdiff_t>(before), to.end(), begin);
}

PictureGrid grid_of(BucketShape bucket) {
  return {.width = bucket.width,
          .height = bucket.height,
          .original_width = bucket.width,
          .original_height = bucket.height};
}

}  // namespace

MicroBatch empty_micro_batch(const PictureLayout& layout, const PixelAllocator<uint8_t>& memory) {
  MicroBatch batch;
  batch.pixels = PixelVector(memory);
  batch.cu_seqlens = {0};
  batch.height = layout.height;
  batch.width = layout.width;
  return batch;
}

void append_text(const Sample& sample, uint64_t id, const PictureLayout& layout,
                 MicroBatch& batch) {
  const SampleText& text = sample.text;
  MM_CHECK(sample.grids.size() == (layout.varied ? text.image_begin.size() : 0),
           "{} grids for {} pictures", sample.grids.size(), text.image_begin.size());
  const auto first = static_cast<int32_t>(batch.tokens.size());
  const auto length = static_cast<int32_t>(text.tokens.size());
  batch.tokens.insert(batch.tokens.end(), text.tokens.begin(), text.tokens.end());
  append_targets(text, batch);
  append_count(0, length, batch.positions);
  for (size_t picture = 0; picture < text.image_begin.size(); ++picture) {
    const int32_t begin = first + static_cast<int32_t>(text.image_begin[picture]);
    append_count(begin, layout.varied ? sample.grids[picture].tokens : layout.patches,
                 batch.image_token_index);
  }
  batch.images += size_of(text, sample.grids).images;
  batch.grids.insert(batch.grids.end(), sample.grids.begin(), sample.grids.end());
  batch.cu_seqlens.push_back(first + length);
  batch.sample_ids.push_back(id);
  batch.attention_pairs += 0.5 * length * (length + 1.0);
}

void append_sample(const Sample& sample, uint64_t id, const PictureLayout& layout,
                   MicroBatch& batch) {
  // Not insert(): through an allocator of one's own that goes byte by byte.
  const size_t before = batch.pixels.size();
  batch.pixels.resize(before + sample.pixels.size());
  std::ranges::copy(sample.pixels, batch.pixels.data() + before);
  append_text(sample, id, layout, batch);
}

Sample stand_in(const SampleSize& size, const PictureLayout& layout) {
  Sample sample;
  const auto images = static_cast<size_t>(size.images);
  sample.text.tokens.assign(static_cast<size_t>(size.tokens), 0);
  sample.pixels.assign(images * layout.pixel_bytes(), 0);
  if (layout.varied) {
    // Its grids are unknown: as many single tiles, which no token stands for.
    const PictureGrid grid = layout.bucketed
                                 ? grid_of(size.bucket)
                                 : PictureGrid{.width = layout.width, .height = layout.height};
    sample.text.image_begin.assign(images, 0);
    sample.grids.assign(images, grid);
    sample.pixels.assign(images * grid.pixel_bytes(), 0);
    return sample;
  }
  const auto patches = static_cast<size_t>(layout.patches);
  for (size_t i = 0; i < images; ++i) {
    sample.text.image_begin.push_back(static_cast<uint32_t>(i * patches));
    for (size_t p = 0; p < patches; ++p)
      sample.text.tokens.at(i * patches + p) = layout.image_token_id;
  }
  return sample;
}

namespace {

/// The common size of all tiles, if they have one.
void set_tile_size(MicroBatch& batch) {
  if (batch.grids.empty()) return;
  const PictureGrid& first = batch.grids.front();
  const bool equal = std::ranges::all_of(batch.grids, [&](const PictureGrid& grid) {
    return grid.width == first.width && grid.height == first.height;
  });
  batch.width = equal ? first.width : 0;
  batch.height = equal ? first.height : 0;
}

size_t pixel_bytes(const Sample& sample, const PictureLayout& layout) {
  if (!layout.varied) return sample.text.image_begin.size() * layout.pixel_bytes();
  size_t bytes = 0;
  for (const PictureGrid& grid : sample.grids) bytes += grid.pixel_bytes();
  return bytes;
}

/// The stand-in for a row that could not be read; its pixels go in at `place`.
Sample put_stand_in(const SampleSize& size, const PictureLayout& layout, size_t place,
                    PixelVector& pixels) {
  Sample blank = stand_in(size, layout);
  pixels.insert(pixels.begin() + static_cast<ptrdiff_t>(place), blank.pixels.size(), uint8_t{0});
  return blank;
}

/// A picture that could not be read counts nothing, nor do the fillers behind the others.
void add_weights(const Pack& pack, const std::vector<BadRead>& bad, bool pixels,
                 MicroBatch& batch) {
  const auto fillers = static_cast<size_t>(pack.fillers);
  const size_t real = pack.samples.size();
  batch.target_count = static_cast<int64_t>(real - bad.size());
  const PictureGrid blank = grid_of(pack.bucket);
  batch.images += static_cast<int32_t>(fillers);
  batch.grids.insert(batch.grids.end(), fillers, blank);
  batch.cu_seqlens.insert(batch.cu_seqlens.end(), fillers, batch.cu_seqlens.back());
  batch.sample_ids.insert(batch.sample_ids.end(), fillers, kFillerId);
  if (pixels) batch.pixels.insert(batch.pixels.end(), fillers * blank.pixel_bytes(), uint8_t{0});
  if (fillers == 0 && bad.empty()) return;
  batch.weights.assign(real, 1.0F);
  batch.weights.insert(batch.weights.end(), fillers, 0.0F);
  for (const BadRead& read : bad)
    batch.weights[static_cast<size_t>(std::ranges::find(pack.samples, read.sample_id) -
                                      pack.samples.begin())] = 0;
}

/// Of a bucketed set, the layout that this one picture would be a set of.
PictureLayout layout_of(const Sample& sample, const PictureLayout& layout) {
  if (!layout.bucketed) return layout;
  return {.height = sample.grids.front().height, .width = sample.grids.front().width};
}

/// Bytes of the pack's pictures where they are known before.
size_t planned_bytes(const Pack& pack, const PictureLayout& layout) {
  if (layout.bucketed) return size_t{3} * static_cast<size_t>(pack.pixels());
  return static_cast<size_t>(pack.images) * layout.pixel_bytes();
}

}  // namespace

Assembled assemble(const SampleStore& store, std::span<const SampleSize> sizes, const Pack& pack,
                   const AssembleOptions& options) {
  const PictureLayout layout = store.pictures();
  const auto& [augmentation, epoch, memory] = options;
  Assembled result{empty_micro_batch(layout, memory), {}};
  MicroBatch& batch = result.batch;
  const bool pixels = store.gives_pixels();
  if (pixels) batch.pixels.reserve(planned_bytes(pack, layout));
  std::vector<Result<Sample>> samples = store.read_pack(pack.samples, batch.pixels);
  size_t pixel = 0;  // where this sample's begin
  for (size_t i = 0; i < samples.size(); ++i) {
    const uint32_t id = pack.samples[i];
    if (!samples[i]) {
      const Failure& failure = samples[i].failure();
      result.bad.push_back({id, std::string(store.key(id)), failure.kind, failure.message});
      samples[i] = pixels ? put_stand_in(sizes[id], layout, pixel, batch.pixels)
                          : stand_in(sizes[id], layout);
    }
    const Sample& sample = *samples[i];
    const size_t bytes = pixels ? pixel_bytes(sample, layout) : 0, first = batch.tokens.size();
    if (augmentation.enabled() && pixels)
      augment_pictures(augmentation, epoch, id, layout_of(sample, layout),
                       std::span(batch.pixels).subspan(pixel, bytes));
    append_text(sample, id, layout, batch);
    drop_tokens(augmentation, epoch, id, sample.text, std::span(batch.tokens).subspan(first));
    pixel += bytes;
  }
  if (layout.bucketed) add_weights(pack, result.bad, pixels, batch);
  if (pixels)
    pixel += static_cast<size_t>(pack.fillers) * 3 * static_cast<size_t>(pack.bucket.pixels());
  set_tile_size(batch);
  const auto tokens = static_cast<int64_t>(batch.tokens.size());
  MM_CHECK(tokens == pack.tokens && batch.images == pack.pictures() && pixel == batch.pixels.size(),
           "pack of {} tokens, {} images planned; {}, {}, {} of {} bytes read", pack.tokens,
           pack.pictures(), tokens, batch.images, pixel, batch.pixels.size());
  return result;
}

}  // namespace mm::data
