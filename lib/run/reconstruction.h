#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>

#include "lib/data/dataset.h"
#include "lib/model/vae_load.h"
#include "lib/run/batch_tensors.h"
#include "lib/run/eval_result.h"
#include "lib/run/trained_weights.h"

namespace mm::run {

/// How far a picture is from another one of its size; both in [0, 1].
struct PictureError {
  double l1 = 0;    ///< mean absolute difference
  double psnr = 0;  ///< 10 log10(1 / mean squared difference), dB; at most 100
  /// Structural similarity (Wang et al. 2004): mean over places and channels, Gaussian window of 11
  /// and deviation 1.5 (of smaller pictures the largest odd number of pixels), without padding,
  /// constants 0.01 and 0.03. 1: equal.
  double ssim = 0;
};
/// [3, H, W] each, any float dtype; computed in float64.
PictureError compare_pictures(const at::Tensor& real, const at::Tensor& rebuilt);

/// Whether RUN/recipe.toml names family vae.
bool is_vae_run(const std::filesystem::path& run);

/// An autoencoder run's newest whole checkpoint, in fp32.
struct TrainedVae {
  std::filesystem::path run;
  int64_t step = 0;
  bool averaged = false;  ///< by the moving average of the weights
  std::unique_ptr<const model::Vae> vae;
  PixelNorm norm;
};
/// Throws DataError if the run has no whole checkpoint, UsageError if it is of another family.
TrainedVae open_trained_vae(const std::filesystem::path& run, Weights weights = Weights::kAveraged);

struct ReconstructionOptions {
  int64_t limit = 0;  ///< first rows only, 0: all
  size_t shown = 64;  ///< pictures kept beside their reconstructions, the first ones
};
/// Pictures of a bucketed set through encoder and decoder, by the mean of what the encoder gives:
/// tasks.reconstruction has means over pictures, `rebuilt` the first of them. Throws UsageError for
/// a set without buckets or with sides that the factor does not divide, DataError for a damaged
/// sample or none.
EvalResult evaluate_reconstruction(const TrainedVae& trained, const data::Dataset& set,
                                   const ReconstructionOptions& options = {});

}  // namespace mm::run
