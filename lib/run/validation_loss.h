#pragma once
#include <map>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/data/dataset.h"
#include "lib/model/objective_draw.h"
#include "lib/run/encoded_set.h"
#include "lib/run/trained_diffusion.h"

namespace mm::run {

struct ValidationOptions {
  int64_t times = 8;   ///< model::fixed_times of the objective
  int64_t limit = 0;   ///< first rows only, 0: all
  int64_t batch = 32;  ///< pictures at once; moves nothing but rounding
  /// What mmshard encode made of the set, for runs of latents or embeddings; null: the run's
  /// encoders (use_encoders) make them.
  /// Rows that it lacks are left out.
  const EncodedSet* encoded = nullptr;
  /// That the run's encoders take, 0: all of a batch.
  int64_t pictures_at_once = 0, captions_at_once = 0;
};

/// Losses of held-out pictures at fixed times, without a draw: two runs of one objective, or two
/// steps of one run, are compared by it. Each picture weighs the same, conditions are kept.
struct ValidationLoss {
  struct AtTime {
    double time = 0;      ///< step in [0, T); of flows sigma in [0, 1], 1 is noise
    double loss = 0;      ///< mean over pictures and their elements, as training weights it
    double variance = 0;  ///< of it: the variational bound, in bits
  };
  int64_t samples = 0;
  bool averaged = false;  ///< by the moving average of the weights
  bool flow = false;      ///< times are sigmas
  bool bound = false;     ///< there is a variational bound
  std::vector<AtTime> at;

  /// Over times.
  double mean() const;
  /// By step of the schedule, or by sigma.
  std::map<std::string, double> by_time() const;
  /// {samples, averaged, mean, by_step or by_sigma: {time: loss}[, variance_terms: {time: bits}]}.
  Json to_json() const;
  /// A line a time, then the mean.
  std::string table() const;

 private:
  std::string name_of(const AtTime& one) const;
};

/// Which encoders there are, or will be when batches are measured, for what is not stored.
struct OnlineEncoders {
  bool vae = false, text = false;
  int64_t factor = 1;  ///< pixels along a side of one latent
};

/// Held-out pictures in batches of one shape. Const members may be called from any thread.
class HeldOut {
 public:
  /// Throws as validation_loss does. All references must outlive it; trained.encoders may come
  /// after it.
  HeldOut(const TrainedDiffusion& trained, const data::Dataset& set,
          const ValidationOptions& options, const OnlineEncoders& online);

  int64_t batches() const { return static_cast<int64_t>(batches_.size()); }
  /// Pictures of one batch, then the sums over them of loss and variance at each time. Throws
  /// DataError for a sample that cannot be read.
  using Sums = std::vector<double>;
  Sums measure(int64_t number, const model::ParamView& params) const;
  /// Of all batches, in their order.
  ValidationLoss mean_of(const std::vector<Sums>& batches) const;

 private:
  const TrainedDiffusion& trained_;
  const data::Dataset& set_;
  const ValidationOptions options_;
  std::vector<data::SampleSize> sizes_;
  std::vector<model::DrawnTime> times_;
  std::vector<data::Pack> batches_;
};

/// Latents are drawn once from what their encoder gives. Noise is a function of the row of `set`
/// and the number of the time alone, not of the run's seed. Throws UsageError if the set is not
/// bucketed, has other classes or another tokenizer than the run, buckets that patches do not
/// divide, or neither stored latents and embeddings nor encoders where the run needs them;
/// DataError for a damaged or missing sample, and for latents or embeddings of other models than
/// the run's.
ValidationLoss validation_loss(const TrainedDiffusion& trained, const model::ParamView& params,
                               const data::Dataset& set, const ValidationOptions& options = {});

}  // namespace mm::run
