#include "lib/image/probe_file.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "lib/base/error.h"
#include "lib/base/file.h"

namespace mm::image {
namespace {

constexpr size_t kFirstBytes = 16384;

// Fewer than asked for only at the end of the file.
size_t read_first(const File& file, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t now =
        pread(file.descriptor(), out.data() + done, out.size() - done, static_cast<off_t>(done));
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) throw IoError("{}: {}", file.path().string(), std::strerror(errno));
    if (now == 0) break;
    done += static_cast<size_t>(now);
  }
  return done;
}

}  // namespace

Result<Header> probe_file(const std::filesystem::path& path, const Limits& limits) {
  std::array<std::byte, kFirstBytes> first;
  const size_t count = read_first(File::open_read(path), first);
  const auto start = std::span<const std::byte>(first).first(count);
  const bool whole = count < first.size();
  // What else a PNG or WebP says may stand behind its pixels; a JPEG's header ends with its first
  // scan, and a walk that runs off the start is "truncated".
  if (whole || sniff(start) == Format::kJpeg) {
    auto header = probe(start, limits);
    if (whole || header || header.failure().kind != "truncated") return header;
  }
  const MappedFile file(path);
  return probe(file.bytes(), limits);
}

}  // namespace mm::image
