#include "lib/data/collate.h"

#include <algorithm>

#include "lib/base/error.h"

namespace mm::data {
namespace {

void append_targets(const SampleText& text, MicroBatch& batch) {
  const std::vector<int32_t> labels = labels_of(text);
  for (size_t i = 0; i < labels.size(); ++i) {
    const int32_t target = i + 1 < labels.size() ? labels[i + 1] : kIgnore;
    batch.targets.push_back(target);
    batch.target_count += target != kIgnore;
  }
}

}  // namespace

MicroBatch empty_micro_batch(const PictureLayout& layout, std::pmr::memory_resource* memory) {
  MicroBatch batch;
  if (memory != nullptr) batch.pixels = PixelVector(PixelAllocator<uint8_t>(memory));
  batch.cu_seqlens = {0};
  batch.height = layout.height;
  batch.width = layout.width;
  return batch;
}

void append_sample(const Sample& sample, uint64_t id, const PictureLayout& layout,
                   MicroBatch& batch) {
  const SampleText& text = sample.text;
  MM_CHECK(sample.grids.size() == (layout.varied ? text.image_begin.size() : 0),
           "{} grids for {} pictures", sample.grids.size(), text.image_begin.size());
  const auto first = static_cast<int32_t>(batch.tokens.size());
  const auto length = static_cast<int32_t>(text.tokens.size());
  batch.tokens.insert(batch.tokens.end(), text.tokens.begin(), text.tokens.end());
  append_targets(text, batch);
  for (int32_t i = 0; i < length; ++i) batch.positions.push_back(i);
  for (size_t picture = 0; picture < text.image_begin.size(); ++picture) {
    const int32_t begin = first + static_cast<int32_t>(text.image_begin[picture]);
    const int32_t tokens = layout.varied ? sample.grids[picture].tokens : layout.patches;
    for (int32_t i = 0; i < tokens; ++i) batch.image_token_index.push_back(begin + i);
  }
  // Not insert(): through an allocator of one's own that goes byte by byte.
  const size_t pixels_before = batch.pixels.size();
  batch.pixels.resize(pixels_before + sample.pixels.size());
  std::ranges::copy(sample.pixels, batch.pixels.data() + pixels_before);
  batch.images += size_of(text, sample.grids).images;
  batch.grids.insert(batch.grids.end(), sample.grids.begin(), sample.grids.end());
  batch.cu_seqlens.push_back(first + length);
  batch.sample_ids.push_back(id);
  batch.attention_pairs += 0.5 * length * (length + 1.0);
}

Sample stand_in(const SampleSize& size, const PictureLayout& layout) {
  Sample sample;
  const auto images = static_cast<size_t>(size.images);
  sample.text.tokens.assign(static_cast<size_t>(size.tokens), 0);
  sample.pixels.assign(
      images * static_cast<size_t>(layout.height) * static_cast<size_t>(layout.width) * 3, 0);
  if (layout.varied) {
    // Its grids are unknown: as many single tiles, which no token stands for.
    sample.text.image_begin.assign(images, 0);
    sample.grids.assign(images, {.width = layout.width, .height = layout.height});
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

}  // namespace

Assembled assemble(const SampleStore& store, std::span<const SampleSize> sizes, const Pack& pack,
                   const AssembleOptions& options) {
  const PictureLayout layout = store.pictures();
  const auto& [augmentation, epoch, memory] = options;
  Assembled result{empty_micro_batch(layout, memory), {}};
  result.batch.pixels.reserve(static_cast<size_t>(pack.images) *
                              static_cast<size_t>(layout.height) *
                              static_cast<size_t>(layout.width) * 3);
  std::vector<Result<Sample>> samples = store.read_many(pack.samples);
  for (size_t i = 0; i < samples.size(); ++i) {
    const uint32_t id = pack.samples[i];
    Result<Sample>& sample = samples[i];
    if (!sample) {
      const Failure& failure = sample.failure();
      result.bad.push_back({id, std::string(store.key(id)), failure.kind, failure.message});
      append_sample(stand_in(sizes[id], layout), id, layout, result.batch);
      continue;
    }
    augment_sample(augmentation, epoch, id, layout, *sample);
    const size_t first = result.batch.tokens.size();
    append_sample(*sample, id, layout, result.batch);
    drop_tokens(augmentation, epoch, id, sample->text,
                std::span(result.batch.tokens).subspan(first));
  }
  set_tile_size(result.batch);
  const auto tokens = static_cast<int64_t>(result.batch.tokens.size());
  MM_CHECK(tokens == pack.tokens && result.batch.images == pack.images,
           "pack of {} tokens, {} images planned; {}, {} read", pack.tokens, pack.images, tokens,
           result.batch.images);
  return result;
}

}  // namespace mm::data
