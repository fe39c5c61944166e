#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/model/block.h"

namespace mm::model {

/// Rows of one sample inside a part of the model, in the order of the batch. A sample with several
/// pictures has a run for each.
struct SampleRows {
  uint64_t sample = 0;  ///< row of the data set's index
  int64_t share = 1;    ///< rows in proportion: tokens, tiles, or pixels of a picture
};

/// What the random draws of a micro-batch in training are keyed by.
struct RowDraws {
  uint64_t seed = 0, epoch = 0;
  std::vector<SampleRows> text;      ///< of the language part
  std::vector<SampleRows> pictures;  ///< of vision and projector
};

/// Those of a batch whose samples are `sample_ids` [samples], in order. Pictures belong to the
/// sample in which their placeholders stand.
RowDraws row_draws(const Batch& batch, std::span<const uint64_t> sample_ids, uint64_t seed,
                   uint64_t epoch);

/// Which adapter reads a dropped input, and how much of it is dropped.
struct AdapterInput {
  Part part = Part::kLanguage;
  std::string_view module;  ///< name of the linear layer
  double probability = 0;   ///< in [0, 1)
};

/// x [..., in] with each element dropped (0) with this probability, else divided by 1 -
/// probability, so that the mean stays; x itself at 0. The draw of an element is a function of
/// (seed, epoch, module, sample, row of the sample, column) alone: the same in whatever micro-batch
/// and on whatever rank the sample lies, when a block runs again, and in a run that goes on (laws 1
/// and 2). Differentiable; keeps one byte an element. Linear in the elements: the CPU draws them on
/// all cores, for models on a GPU too, which then waits for the draw and a copy of one byte an
/// element at every adapter.
at::Tensor dropped_input(const at::Tensor& x, const RowDraws& draws, const AdapterInput& input);

}  // namespace mm::model
