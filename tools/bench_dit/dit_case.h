#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/model/batch.h"
#include "lib/model/block.h"
#include "lib/optim/adamw.h"
#include "lib/optim/flat_grad_sink.h"
#include "lib/optim/param_store.h"

namespace mm::bench {

/// The model; the defaults are DiT-S/2.
struct DitShape {
  int64_t heads = 6, layers = 12;  ///< heads of 64
  int64_t sample_size = 32;        ///< side of the latents that positions are scaled to
  bool bf16 = false;               ///< compute copies in bf16; masters, gradients, moments in fp32
};

/// `pictures` random latents [4, height, width] (even sides) with noise, times and labels.
model::Batch random_latents(int64_t pictures, int64_t height, int64_t width);

/// A class-conditional DiT with patches of 2, one embedder for all blocks, and AdamW. Loss: squared
/// error of the noise, mean over elements, summed over pictures. tools/peers/bench_dit.py builds
/// the same.
class DitCase {
 public:
  explicit DitCase(const DitShape& shape);

  /// Forward and backward, gradients times `seed` into the flat buckets; returns the loss's sum.
  double gradients(const model::Batch& batch, double seed);
  /// One AdamW update of all parameters.
  void update();

  const std::vector<optim::Bucket>& buckets() const { return gradients_->buckets(); }
  int64_t parameters() const;
  /// Of a forward and a backward, 2 a multiply-add.
  double flops(const model::Batch& batch) const;

 private:
  model::Model model_;
  std::unique_ptr<optim::ParamStore> params_;
  std::unique_ptr<optim::FlatGradSink> gradients_;
  std::unique_ptr<optim::AdamW> optimizer_;
};

}  // namespace mm::bench
