#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/data/cache_directory.h"
#include "lib/data/dataset_manifest.h"
#include "lib/data/shard_pool.h"

namespace mm::data {

/// One place that holds copies of shards, fastest first.
struct CacheTier {
  std::filesystem::path directory;  ///< on a memory file system: memory
  uint64_t bytes = 0;               ///< budget of the node, for all processes and data sets
};

struct NodeCacheOptions {
  std::vector<CacheTier> tiers;
  size_t block_bytes = size_t{4} << 20;  ///< of a copy
  CacheFault fault = {};                 ///< crash tests
};

/// What the cache did so far.
struct CacheCounts {
  uint64_t hits = 0, misses = 0;  ///< records read from a copy, from the store
  uint64_t fetched = 0;           ///< shards copied
  uint64_t damaged = 0;           ///< copies dropped because a record in them was wrong
};

/// Copies of a data set's shards on this node, fetched in the order in which the plan needs them: a
/// thread per tier copies from the next slower place, next needed first; make_room of
/// CacheDirectory decides what goes. Copies are compared with the manifest's hash before they
/// count. What is not there yet is read from the store: the cache never makes a reader wait, and
/// any failure of it (disk full, directory gone) is logged once and means reading the store. A
/// shard that another process deletes while this one has it open takes its room until this one
/// notices, within a tenth of a second. Thread-safe.
class NodeCache {
 public:
  /// `directory`, `manifest`: of the data set; `fingerprint` tells data sets apart. Throws
  /// UsageError when a tier cannot hold the largest shard; as CacheDirectory does.
  NodeCache(std::filesystem::path directory, const DatasetManifest& manifest,
            const std::string& fingerprint, NodeCacheOptions options);
  ~NodeCache();
  NodeCache(const NodeCache&) = delete;

  /// Files that this process reads in steps [first_step, first_step + size). Replaces what was
  /// said of those and later steps.
  void expect(uint64_t first_step, const std::vector<std::vector<uint32_t>>& shards_of_steps);
  /// Steps before `step` are over.
  void reached(uint64_t step);

  /// A reader of the fastest copy; null: not here.
  std::shared_ptr<const ShardReader> find(uint32_t shard);
  /// A record of the copy was wrong: no tier keeps it.
  void damaged(uint32_t shard);
  CacheCounts counts() const;
  /// Waits until nothing can be fetched now, for tests; false after `deadline_s`.
  bool settle(double deadline_s);

 private:
  struct Tier;
  void run(Tier& tier);
  bool fetch_one(Tier& tier);
  bool copy(Tier& tier, uint32_t shard, NextUse next_use);
  std::filesystem::path source_of(const Tier& tier, uint32_t shard) const;
  std::map<std::string, NextUse> needs(std::vector<std::pair<NextUse, uint32_t>>& order) const;
  void forget_deleted(Tier& tier);

  const std::filesystem::path directory_;
  const std::vector<ShardEntry> shards_;
  std::vector<std::string> names_;  ///< of the copies
  const NodeCacheOptions options_;
  std::vector<std::unique_ptr<Tier>> tiers_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::set<uint64_t>> uses_;  ///< of each shard: steps to come
  uint64_t step_ = 0, version_ = 0;
  bool stop_ = false;
  std::atomic<uint64_t> hits_ = 0, misses_ = 0, fetched_ = 0, damaged_ = 0;
};

}  // namespace mm::data
