#pragma once
#include <memory>
#include <vector>

#include "lib/model/block.h"
#include "lib/step/bindings.h"
#include "lib/step/builder.h"
#include "lib/step/executor.h"

// What a run binds to an executor, in miniature, and the slow reference beside it.
namespace mm::step::toy {

/// Weights as leaves, flat float64 gradient buckets, momentum SGD with clipping.
class Store final : public model::ParamView,
                    public model::GradSink,
                    public ReduceTarget,
                    public UpdateHooks {
 public:
  Store(std::vector<at::Tensor> weights, const std::vector<bool>& trainable,
        std::vector<BucketRow> buckets);

  at::Tensor get(model::ParamId id) const override { return leaves_.at(id); }
  void add(model::ParamId id, const at::Tensor& grad) override;
  at::Tensor bucket(int index) override { return buckets_.at(index); }
  GradNorm norm() override;
  void clip(double norm) override;
  bool update(const StepInput& input, double norm) override;

  /// Undefined for a frozen parameter.
  at::Tensor gradient(model::ParamId id) const { return gradients_.at(id); }
  void zero_gradients();

  double clip_limit = 1e9, learning_rate = 0.1;
  int updates = 0;
  std::vector<at::Tensor> momentum;  ///< per bucket

 private:
  std::vector<at::Tensor> leaves_;  // [params]
  std::vector<BucketRow> rows_;
  std::vector<at::Tensor> buckets_;    // flat
  std::vector<at::Tensor> gradients_;  // [params] views into buckets_
};

/// Micro-batches of one rank, in order.
class Source final : public BatchSource {
 public:
  explicit Source(std::vector<model::Batch> batches) : batches_(std::move(batches)) {}
  model::Batch load(int micro_batch) override { return batches_.at(micro_batch); }

 private:
  std::vector<model::Batch> batches_;
};

std::vector<bool> all_but(const model::Model& model, const std::vector<model::ParamId>& frozen);
/// Trainable parameters, last first, `per_bucket` to a bucket.
std::vector<BucketRow> make_buckets(const model::Model& model, const std::vector<bool>& trainable,
                                    int per_bucket);
double count_targets(const std::vector<model::Batch>& batches);

/// A rank: model, program, store and executor. `group` may be null with one rank.
struct Rank {
  Rank(const model::Model& model, const BuildOptions& options, std::vector<at::Tensor> weights,
       std::vector<model::Batch> batches, dist::Group* group);
  StepReport step(double global_targets) {
    return executor->run({.step = 1, .global_targets = global_targets});
  }

  Program program;
  Store store;
  Source source;
  std::unique_ptr<Executor> executor;
};

/// Whole graph, ordinary autograd, all batches at once: gradients of sum of losses / N, undefined
/// for frozen parameters.
struct Reference {
  double loss_sum = 0;
  std::vector<at::Tensor> gradients;
};
Reference plain_loop(const model::Model& model, const std::vector<at::Tensor>& weights,
                     const std::vector<bool>& trainable, const std::vector<model::Batch>& batches);

/// Greatest absolute difference of the gradients; 1e300 if one side has one that the other lacks.
double difference(const Store& store, const Reference& reference);

}  // namespace mm::step::toy
