#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/health/full_tests.h"

namespace mm::health {
namespace {

constexpr size_t kChunk = size_t{4} << 20;

// Every chunk differs, so that a store that folds equal blocks has nothing to fold.
void fill(std::vector<uint64_t>& chunk, uint64_t index) {
  uint64_t x = index * 0x9E3779B97F4A7C15ULL + 1;
  for (uint64_t& word : chunk) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    word = x;
  }
}

class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path) : path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

DiskRate disk_rate(const std::filesystem::path& directory, uint64_t bytes) {
  const TemporaryFile file(directory / ("mmprobe-disk." + std::to_string(::getpid())));
  const uint64_t chunks = std::max<uint64_t>(bytes / kChunk, 1);
  std::vector<uint64_t> chunk(kChunk / sizeof(uint64_t)), back(chunk.size());
  const double mb = 1e-6 * static_cast<double>(chunks * kChunk);
  double start_s = system_clock().monotonic_s();
  {
    File out = File::create(file.path());
    for (uint64_t i = 0; i < chunks; ++i) {
      fill(chunk, i);
      out.write(std::as_bytes(std::span(chunk)));
    }
    out.sync();
  }
  DiskRate rate;
  rate.write_mb_s = mb / (system_clock().monotonic_s() - start_s);
  const File in = File::open_read(file.path());
  // Without this the page cache would answer. File systems in memory ignore it.
  ::posix_fadvise(in.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  double read_s = 0;
  for (uint64_t i = 0; i < chunks; ++i) {
    start_s = system_clock().monotonic_s();
    in.read_at(i * kChunk, std::as_writable_bytes(std::span(back)));
    read_s += system_clock().monotonic_s() - start_s;
    fill(chunk, i);
    if (chunk != back)
      throw DataError("{}: other bytes came back from the disk than were written, near byte {}",
                      file.path().string(), i * kChunk);
  }
  rate.read_mb_s = mb / std::max(read_s, 1e-9);
  return rate;
}

}  // namespace mm::health
