#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "lib/data/dataset_manifest.h"
#include "lib/data/sample.h"
#include "lib/model/block.h"
#include "lib/model/eager.h"
#include "lib/model/llava_config.h"
#include "lib/run/batch_tensors.h"
#include "lib/text/tokenizer.h"

namespace mm::run {

/// A run's newest whole checkpoint as a model to ask, in fp32, with what it takes to turn a picture
/// into a prompt.
struct TrainedModel {
  std::filesystem::path run;
  int64_t step = 0;
  uint64_t seed = 0;
  model::LlavaConfig config;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<model::SimpleParams> params;
  std::unique_ptr<text::Tokenizer> tokenizer;
  PixelNorm norm;
  std::vector<int64_t> stop_tokens;  ///< end an answer (stop_tokens.h)
  data::DatasetManifest data;        ///< of the pictures it was trained on: template, geometry

  /// The same model with its initial weights, as training found them.
  model::SimpleParams untrained() const;
};

/// Throws DataError if the run has no whole checkpoint, UsageError if it is no run.
TrainedModel open_trained(const std::filesystem::path& run);

/// Prompts of several samples as one micro-batch: each sample's tokens up to its first trainable
/// one, with its pictures.
model::Batch prompt_batch(const TrainedModel& trained,
                          const std::vector<const data::Sample*>& samples);

/// Whole samples with their targets as one micro-batch.
model::Batch whole_batch(const TrainedModel& trained,
                         const std::vector<const data::Sample*>& samples);

/// The prompt of one prepared picture under the run's chat template: [side, side, 3] u8, or the
/// tiles that `grid` says.
data::Sample picture_prompt(const TrainedModel& trained, std::vector<uint8_t> pixels,
                            const std::optional<data::PictureGrid>& grid = {});

/// Greedy answers, as text, one a sample.
std::vector<std::string> answer(const TrainedModel& trained, const model::ParamView& params,
                                const std::vector<const data::Sample*>& prompts,
                                int64_t max_new_tokens);

}  // namespace mm::run
