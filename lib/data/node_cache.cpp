#include "lib/data/node_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/base/log.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

uint64_t largest(const std::vector<ShardEntry>& shards) {
  uint64_t bytes = 0;
  for (const ShardEntry& shard : shards) bytes = std::max(bytes, shard.file.bytes);
  return bytes;
}

/// Fills a part from its start without changing its size, which is its place in the budget.
class PartWriter {
 public:
  explicit PartWriter(const fs::path& path)
      : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
    if (fd_ < 0) fail();
  }
  ~PartWriter() {
    if (fd_ >= 0) ::close(fd_);
  }
  PartWriter(const PartWriter&) = delete;
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail();
      bytes.remove_prefix(static_cast<size_t>(done));
    }
  }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    const int code = errno;
    throw IoError("{}: cannot write: {}", path_.string(), std::generic_category().message(code));
  }
  const fs::path path_;
  int fd_;
};

}  // namespace

struct NodeCache::Tier {
  size_t number;
  CacheDirectory files;
  std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<const ShardReader>> open;
  std::set<uint32_t> refused;  ///< shards whose source is not what the manifest says
  uint64_t settled = 0;        ///< version of the needs for which nothing is left to do
  bool broken = false;
  std::thread thread;
};

NodeCache::NodeCache(fs::path directory, const DatasetManifest& manifest,
                     const std::string& fingerprint, NodeCacheOptions options)
    : directory_(std::move(directory)),
      shards_(manifest.shards),
      options_(std::move(options)),
      uses_(manifest.shards.size()) {
  for (const ShardEntry& shard : shards_)
    names_.push_back(fingerprint.substr(0, 16) + "-" + shard.file.file);
  for (const CacheTier& tier : options_.tiers) {
    if (tier.bytes < largest(shards_)) {
      throw UsageError("{}: a cache of {} bytes cannot hold the largest shard of {}, {} bytes",
                       tier.directory.string(), tier.bytes, directory_.string(), largest(shards_));
    }
    tiers_.emplace_back(new Tier{
        tiers_.size(), {tier.directory, tier.bytes, options_.fault}, {}, {}, {}, 0, false, {}});
  }
  for (auto& tier : tiers_) tier->thread = std::thread([this, &tier = *tier] { run(tier); });
}

NodeCache::~NodeCache() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (auto& tier : tiers_) tier->thread.join();
}

void NodeCache::expect(uint64_t first_step,
                       const std::vector<std::vector<uint32_t>>& shards_of_steps) {
  const std::scoped_lock lock(mutex_);
  for (auto& steps : uses_) steps.erase(steps.lower_bound(first_step), steps.end());
  for (size_t i = 0; i < shards_of_steps.size(); ++i) {
    for (const uint32_t shard : shards_of_steps[i]) uses_.at(shard).insert(first_step + i);
  }
  ++version_;
  changed_.notify_all();
}

void NodeCache::reached(uint64_t step) {
  const std::scoped_lock lock(mutex_);
  step_ = step;
  for (auto& steps : uses_) steps.erase(steps.begin(), steps.lower_bound(step));
  ++version_;
  changed_.notify_all();
}

std::map<std::string, NextUse> NodeCache::needs(
    std::vector<std::pair<NextUse, uint32_t>>& order) const {
  std::map<std::string, NextUse> needs;
  for (uint32_t shard = 0; shard < uses_.size(); ++shard) {
    if (uses_[shard].empty()) continue;
    order.emplace_back(*uses_[shard].begin(), shard);
    needs.emplace(names_[shard], order.back().first);
  }
  std::sort(order.begin(), order.end());
  return needs;
}

void NodeCache::run(Tier& tier) {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (tier.settled == version_ || tier.broken) {
      changed_.wait(lock);
      continue;
    }
    const uint64_t version = version_;
    lock.unlock();
    bool more = false, broken = false;
    try {
      more = fetch_one(tier);
    } catch (const Error& error) {
      log::warn("data", fmt::format("the cache fetches no more: {}", error.what()));
      broken = true;
    }
    lock.lock();
    tier.broken = broken;
    if (more) continue;
    tier.settled = version;
    changed_.notify_all();
    // Steps may be short; telling the needs anew costs a file.
    changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return stop_; });
  }
}

/// Copies the first shard in order of need that is not here and may be; false when there is none.
bool NodeCache::fetch_one(Tier& tier) {
  std::vector<std::pair<NextUse, uint32_t>> order;
  std::map<std::string, NextUse> wanted;
  {
    const std::scoped_lock lock(mutex_);
    wanted = needs(order);
  }
  tier.files.set_needs(wanted);
  forget_deleted(tier);
  for (const auto& [next_use, shard] : order) {
    if (tier.files.find(names_[shard]) || tier.refused.contains(shard)) continue;
    return copy(tier, shard, next_use);
  }
  return false;
}

fs::path NodeCache::source_of(const Tier& tier, uint32_t shard) const {
  for (size_t i = tier.number + 1; i < tiers_.size(); ++i) {
    if (const auto path = tiers_[i]->files.find(names_[shard])) return *path;
  }
  return directory_ / shards_[shard].file.file;
}

bool NodeCache::copy(Tier& tier, uint32_t shard, NextUse next_use) {
  const FileEntry& entry = shards_[shard].file;
  const auto part = tier.files.reserve(names_[shard], entry.bytes, next_use);
  if (!part) return false;
  const File from = File::open_read(source_of(tier, shard));
  PartWriter to(*part);
  Xxh3Stream hash;
  std::string block;
  for (uint64_t offset = 0; offset < entry.bytes; offset += block.size()) {
    block.resize(std::min<uint64_t>(options_.block_bytes, entry.bytes - offset));
    from.read_at(offset, std::as_writable_bytes(std::span(block)));
    hash.add(block);
    to.write(block);
    if (options_.fault) options_.fault("block");
  }
  to.close();
  if (hash.hex() != entry.xxh3_128) {
    log::warn("data", "a shard is not what the manifest says; it is not cached",
              {{"path", from.path().string()}});
    tier.files.abandon(*part);
    tier.refused.insert(shard);
    return true;
  }
  tier.files.commit(*part, names_[shard]);
  ++fetched_;
  return true;
}

/// A deleted file's bytes come back only when it is closed.
void NodeCache::forget_deleted(Tier& tier) {
  const std::scoped_lock lock(tier.mutex);
  std::erase_if(tier.open,
                [&](const auto& entry) { return !tier.files.find(names_[entry.first]); });
}

std::shared_ptr<const ShardReader> NodeCache::find(uint32_t shard) {
  for (auto& tier : tiers_) {
    const std::scoped_lock lock(tier->mutex);
    if (const auto open = tier->open.find(shard); open != tier->open.end()) {
      ++hits_;
      return open->second;
    }
    const auto path = tier->files.find(names_[shard]);
    if (!path) continue;
    try {
      auto reader = std::make_shared<const ShardReader>(*path);
      tier->open.emplace(shard, reader);
      ++hits_;
      return reader;
    } catch (const Error&) {
      continue;  // deleted between the two calls, or damaged: the store has it
    }
  }
  ++misses_;
  return nullptr;
}

void NodeCache::damaged(uint32_t shard) {
  ++damaged_;
  for (auto& tier : tiers_) {
    const std::scoped_lock lock(tier->mutex);
    tier->open.erase(shard);
    tier->files.drop(names_[shard]);
  }
}

CacheCounts NodeCache::counts() const { return {hits_, misses_, fetched_, damaged_}; }

bool NodeCache::settle(double deadline_s) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(deadline_s), [&] {
    return std::all_of(tiers_.begin(), tiers_.end(),
                       [&](const auto& tier) { return tier->settled == version_ || tier->broken; });
  });
}

}  // namespace mm::data
