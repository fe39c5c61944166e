#include "lib/run/data_access.h"

#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <map>

#include "lib/base/error.h"

namespace mm::run {
namespace {

/// LibTorch's caching allocator of pinned memory. A block's context is what frees it, so it is kept
/// before the bytes that are given out.
class PinnedMemory final : public std::pmr::memory_resource {
 private:
  static constexpr size_t kHead = 64;

  void* do_allocate(size_t bytes, size_t) override {
    at::DataPtr block = at::getHostAllocator(at::kCUDA)->allocate(bytes + kHead);
    auto* begin = static_cast<char*>(block.get());
    new (begin) at::DataPtr(std::move(block));
    return begin + kHead;
  }
  void do_deallocate(void* at, size_t, size_t) override {
    auto* kept = reinterpret_cast<at::DataPtr*>(static_cast<char*>(at) - kHead);
    // Moved out first: the block that holds `kept` ends with it.
    const at::DataPtr block = std::move(*kept);
    kept->~DataPtr();
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace

std::vector<OpenedData> opened_data(const std::vector<std::unique_ptr<data::Dataset>>& sets) {
  std::vector<OpenedData> opened;
  for (const auto& set : sets) opened.push_back({set->directory().string(), set->fingerprint()});
  return opened;
}

void check_same_data(dist::Group& control, const std::vector<OpenedData>& mine) {
  std::string text;
  for (const OpenedData& data : mine) text += data.fingerprint;
  const std::vector<std::string> all = control.all_gather_bytes(text);
  constexpr size_t kDigits = 32;
  for (size_t i = 0; i < mine.size(); ++i) {
    std::map<std::string, std::vector<size_t>> ranks;
    for (size_t rank = 0; rank < all.size(); ++rank)
      ranks[all[rank].size() < (i + 1) * kDigits ? "" : all[rank].substr(i * kDigits, kDigits)]
          .push_back(rank);
    if (ranks.size() < 2) continue;
    std::string who;
    for (const auto& [fingerprint, of] : ranks) {
      who += fmt::format("{}rank{} {} {}", who.empty() ? "" : "; ", of.size() > 1 ? "s" : "",
                         fmt::join(of, ", "), fingerprint.substr(0, 8));
    }
    throw DataError(
        "{}: not the same data set on all ranks (hash of manifest.json: {}); copy it "
        "again, or give a path that all nodes share",
        mine[i].path, who);
  }
}

std::vector<data::CacheTier> cache_tiers(const Recipe& recipe) {
  std::vector<data::CacheTier> tiers;
  if (recipe.cache_memory_bytes > 0) {
    tiers.push_back({fmt::format("/dev/shm/mmkit-cache-{}", getuid()),
                     static_cast<uint64_t>(recipe.cache_memory_bytes)});
  }
  if (!recipe.cache_dir.empty())
    tiers.push_back({recipe.cache_dir, static_cast<uint64_t>(recipe.cache_bytes)});
  return tiers;
}

std::pmr::memory_resource* pinned_memory() {
  if (!at::hasCUDA()) return nullptr;
  static PinnedMemory memory;
  return &memory;
}

}  // namespace mm::run
