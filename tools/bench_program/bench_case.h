#pragma once
#include <memory>
#include <vector>

#include "lib/model/block.h"
#include "lib/model/llava_config.h"
#include "lib/optim/adamw.h"
#include "lib/step/executor.h"

namespace mm::bench {

struct CaseOptions {
  int micro_batches = 2;
  int64_t tokens = 512;  ///< a micro-batch's, placeholders included
  int64_t images = 2;    ///< a micro-batch's
  bool bf16 = false;
};

/// A LLaVA of a few million parameters and the same training step twice: as a plain loop over
/// micro-batches (whole graph, one engine call) and as a program. Both use the library's gradient
/// sink, clipping and AdamW. One rank.
class BenchCase {
 public:
  explicit BenchCase(const CaseOptions& options);
  ~BenchCase();

  void run_plain();
  void run_program();
  /// Loss of the last step, either way.
  double loss() const { return loss_; }
  int64_t parameters() const;
  size_t instructions() const { return program_.list.size(); }
  const step::StepReport& report() const { return report_; }

 private:
  class Hooks;
  double plain_micro_batch(const model::Batch& batch);

  CaseOptions options_;
  model::Model model_;
  std::vector<model::Batch> batches_;
  double targets_ = 0, loss_ = 0;
  std::unique_ptr<optim::ParamStore> params_;
  std::unique_ptr<optim::FlatGradSink> gradients_;
  std::unique_ptr<optim::AdamW> optimizer_;
  std::vector<at::Tensor> slots_;
  std::unique_ptr<Hooks> hooks_;
  step::Program program_;
  std::unique_ptr<step::Executor> executor_;
  step::StepReport report_;
};

}  // namespace mm::bench
