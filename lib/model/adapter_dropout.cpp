#include "lib/model/adapter_dropout.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/base/error.h"
#include "lib/base/random.h"

namespace mm::model {
namespace {

constexpr int64_t kWords = 4;       // of a block of the generator
constexpr int64_t kRowBits = 24;    // counter: columns / kWords below, rows of a sample above
constexpr int64_t kGrainRows = 16;  // that a thread draws at a time

/// A row of a part by its sample.
struct RowKey {
  uint64_t sample = 0;
  uint64_t number = 0;  ///< counted over all of the sample's rows in this part
};

std::vector<RowKey> row_keys(std::span<const SampleRows> runs, int64_t rows) {
  int64_t total = 0;
  for (const SampleRows& run : runs) total += run.share;
  std::map<uint64_t, uint64_t> next;
  std::vector<RowKey> keys;
  keys.reserve(static_cast<size_t>(rows));
  for (const SampleRows& run : runs) {
    if (run.share == 0) continue;
    MM_CHECK(run.share * rows % total == 0, "{} of {} shares of {} rows", run.share, total, rows);
    uint64_t& number = next[run.sample];
    for (int64_t i = 0; i < run.share * rows / total; ++i) keys.push_back({run.sample, number++});
  }
  MM_CHECK(static_cast<int64_t>(keys.size()) == rows, "samples have {} rows, {} are there",
           keys.size(), rows);
  return keys;
}

void draw_row(const Philox& stream, const RowKey& key, uint32_t limit, std::span<bool> dropped) {
  for (size_t column = 0; column < dropped.size(); column += kWords) {
    const auto words =
        stream.block((key.number << kRowBits) | (column / kWords), /*high=*/key.sample);
    const size_t count = std::min<size_t>(kWords, dropped.size() - column);
    for (size_t i = 0; i < count; ++i) dropped[column + i] = words[i] < limit;
  }
}

// [rows, columns] bool.
at::Tensor draw_mask(const Philox& stream, const std::vector<RowKey>& keys, int64_t columns,
                     double probability) {
  const auto limit = static_cast<uint32_t>(std::lround(std::ldexp(probability, 32)));
  const at::Tensor mask = at::empty({static_cast<int64_t>(keys.size()), columns}, at::kBool);
  bool* to = mask.mutable_data_ptr<bool>();
  at::parallel_for(0, mask.size(0), kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      draw_row(stream, keys[static_cast<size_t>(row)], limit,
               {to + row * columns, static_cast<size_t>(columns)});
  });
  return mask;
}

std::vector<SampleRows> picture_runs(const Batch& batch, std::span<const uint64_t> sample_ids) {
  const auto* index = batch.image_token_index.const_data_ptr<int64_t>();
  const auto same_sized = batch.pictures.empty();
  const int64_t count =
      same_sized ? batch.sizes.images : static_cast<int64_t>(batch.pictures.size());
  std::vector<SampleRows> runs;
  int64_t placeholder = 0;
  for (int64_t i = 0; i < count; ++i) {
    const PictureShape shape =
        same_sized ? PictureShape{.tokens = batch.sizes.patches} : batch.pictures[i];
    const auto border = std::ranges::upper_bound(batch.cu_seqlens, index[placeholder]);
    const auto sample = static_cast<size_t>(border - batch.cu_seqlens.begin()) - 1;
    runs.push_back({sample_ids[sample],
                    batch.patch_layout != nullptr ? shape.height * shape.width : shape.tiles});
    placeholder += shape.tokens;
  }
  return runs;
}

}  // namespace

RowDraws row_draws(const Batch& batch, std::span<const uint64_t> sample_ids, uint64_t seed,
                   uint64_t epoch) {
  MM_CHECK(sample_ids.size() + 1 == batch.cu_seqlens.size(), "{} ids of {} samples",
           sample_ids.size(), batch.cu_seqlens.size() - 1);
  RowDraws draws{.seed = seed, .epoch = epoch};
  for (size_t i = 0; i < sample_ids.size(); ++i)
    draws.text.push_back({sample_ids[i], batch.cu_seqlens[i + 1] - batch.cu_seqlens[i]});
  draws.pictures = picture_runs(batch, sample_ids);
  return draws;
}

at::Tensor dropped_input(const at::Tensor& x, const RowDraws& draws, const AdapterInput& input) {
  if (input.probability == 0 || x.numel() == 0) return x;
  const int64_t columns = x.size(-1), rows = x.numel() / columns;
  MM_CHECK(columns <= kWords << kRowBits, "{} columns", columns);
  const auto stream = Philox(draws.seed, "adapter_dropout").child(draws.epoch).child(input.module);
  const std::vector<RowKey> keys =
      row_keys(input.part == Part::kLanguage ? draws.text : draws.pictures, rows);
  const at::Tensor mask =
      draw_mask(stream, keys, columns, input.probability).view(x.sizes()).to(x.device());
  return x.masked_fill(mask, 0) * (1 / (1 - input.probability));
}

}  // namespace mm::model
