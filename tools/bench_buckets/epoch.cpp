#include "tools/bench_buckets/epoch.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>

#include "lib/dist/thread_group.h"

namespace mm::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// [step]: seconds of computing and of waiting of one rank, and the whole step.
struct RankTimes {
  std::vector<double> compute, waiting;
  double wall_s = 0;
};

constexpr int64_t kLatentSide = 8;  ///< pixels of a latent's side

void train_step(DitCase& dit, const RankBatch& batch, dist::Group& group, RankTimes& times) {
  const auto start = Clock::now();
  // No pictures: the empty micro-batch, whose gradients are zero.
  const model::Batch latents =
      batch.pictures == 0 ? model::Batch()
                          : random_latents(batch.pictures, batch.shape.height / kLatentSide,
                                           batch.shape.width / kLatentSide);
  dit.gradients(latents, 1.0 / static_cast<double>(std::max<int64_t>(1, batch.pictures)));
  times.compute.push_back(seconds_since(start));
  const auto done = Clock::now();
  group.barrier();
  times.waiting.push_back(seconds_since(done));
  for (const optim::Bucket& bucket : dit.buckets()) group.all_reduce_sum(bucket.flat);
  dit.update();
}

RankTimes train_rank(const Way& way, const DitShape& shape, size_t stride, dist::Group& group) {
  at::set_num_threads(1);
  DitCase dit(shape);
  const auto rank = static_cast<size_t>(group.rank());
  RankTimes warm, times;
  train_step(dit, way.steps.front()[rank], group, warm);
  group.barrier();
  const auto start = Clock::now();
  for (size_t s = 0; s < way.steps.size(); s += stride)
    train_step(dit, way.steps[s][rank], group, times);
  group.barrier();
  times.wall_s = seconds_since(start);
  return times;
}

double worst_ratio(const std::vector<RankTimes>& ranks) {
  double worst = 1;
  for (size_t s = 0; s < ranks.front().compute.size(); ++s) {
    double sum = 0, most = 0;
    for (const RankTimes& rank : ranks) {
      sum += rank.compute[s];
      most = std::max(most, rank.compute[s]);
    }
    worst = std::max(worst, most * static_cast<double>(ranks.size()) / sum);
  }
  return worst;
}

}  // namespace

EpochTime train_epoch(const Way& way, const DitShape& shape, size_t stride) {
  const size_t ranks = way.steps.front().size();
  std::vector<RankTimes> times(ranks);
  dist::run_thread_ranks(static_cast<int>(ranks), {}, [&](dist::Group& group) {
    times[static_cast<size_t>(group.rank())] = train_rank(way, shape, stride, group);
  });
  const double measured = static_cast<double>((way.steps.size() + stride - 1) / stride),
               scale = static_cast<double>(way.steps.size()) / measured;
  EpochTime time{.wall_s = times.front().wall_s * scale, .worst_ratio = worst_ratio(times)};
  for (const RankTimes& rank : times) {
    for (const double wait : rank.waiting)
      time.waiting += wait / rank.wall_s / static_cast<double>(ranks);
  }
  for (const auto& step : way.steps) {
    for (const RankBatch& batch : step) time.pixels += static_cast<double>(batch.pixels());
  }
  return time;
}

}  // namespace mm::bench
