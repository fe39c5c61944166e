#include "tools/bench_load/waits.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/data/dataset.h"
#include "lib/data/loader.h"
#include "tools/bench_load/file_store.h"

namespace mm::bench {
namespace {

namespace fs = std::filesystem;

/// Out of the page cache, so that the next read is one of the disk.
void drop(const std::vector<fs::path>& files) {
  for (const fs::path& path : files) {
    const File file = File::open_read(path);
    posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

std::vector<fs::path> shards_of(const data::Dataset& set) {
  std::vector<fs::path> paths;
  for (const auto& shard : set.manifest().shards)
    paths.push_back(set.directory() / shard.file.file);
  return paths;
}

Waits consume(const std::string& from, const data::SampleStore& store, const WaitOptions& o) {
  const double begin = system_clock().monotonic_s();
  int32_t longest = 1;
  for (const auto& size : store.sizes()) longest = std::max(longest, size.tokens);
  data::LoaderOptions options;
  options.plan = {.seed = 1,
                  .sequence_length = longest,
                  .packs_per_step = o.batch,
                  .packing = data::Packing::kNone};
  options.threads = o.threads;
  data::Loader loader(store, options);
  Waits waits{.from = from};
  for (int step = 0; step < o.steps; ++step) {
    const auto got = loader.next();
    if (step == 0) {
      waits.first_ms = 1e3 * (system_clock().monotonic_s() - begin);
    } else {
      waits.mean_ms += got.wait_ms / (o.steps - 1);
      waits.worst_ms = std::max(waits.worst_ms, got.wait_ms);
    }
    // The accelerator's time: the processors are free for the loader.
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(o.compute_ms));
  }
  return waits;
}

/// Fetches all shards into the cache.
void fill_cache(data::Dataset& set) {
  std::vector<uint32_t> all(set.manifest().shards.size());
  for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  set.expect(0, {all});
  constexpr double kDeadlineS = 600;
  (void)const_cast<data::NodeCache*>(set.cache())->settle(kDeadlineS);
}

}  // namespace

std::vector<Waits> measure_waits(const WaitOptions& o) {
  std::vector<Waits> all;
  const FileStore files(o.files, o.side, o.repeat);
  drop(files.files());
  all.push_back(consume("files, decoded and resized", files, o));
  const auto set = data::Dataset::open(o.set);
  drop(shards_of(*set));
  all.push_back(consume("packed, " + set->manifest().pictures.storage, *set, o));
  const auto cached = data::Dataset::open(o.set);
  fs::remove_all(o.cache);
  cached->use_cache({.tiers = {{o.cache, uint64_t{1} << 40}}});
  fill_cache(*cached);
  drop(shards_of(*cached));
  all.push_back(consume("packed, in the node cache", *cached, o));
  return all;
}

void print(const std::vector<Waits>& waits, const WaitOptions& o) {
  fmt::print("{} steps of {} pictures, {} ms of computing each, {} threads read\n", o.steps,
             o.batch, o.compute_ms, o.threads);
  fmt::print("{:<44} {:>12} {:>12} {:>12} {:>9}\n", "", "wait a step", "worst", "1st step",
             "of files");
  for (const Waits& w : waits) {
    fmt::print("{:<44} {:>9.2f} ms {:>9.2f} ms {:>9.1f} ms {:>8.1f}%\n", w.from, w.mean_ms,
               w.worst_ms, w.first_ms, 100 * w.mean_ms / waits[0].mean_ms);
  }
}

}  // namespace mm::bench
