#include "lib/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "lib/base/error.h"

namespace mm {
namespace {

std::string errno_text(int code) { return std::generic_category().message(code); }

[[noreturn]] void throw_errno(const std::filesystem::path& path, const char* what) {
  const int code = errno;
  throw IoError("{}: {}: {}", path.string(), what, errno_text(code));
}

int open_or_throw(const std::filesystem::path& path, int flags, const char* what) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw_errno(path, what);
  return fd;
}

uint64_t size_of(const std::filesystem::path& path, int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_errno(path, "cannot stat");
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace

std::string read_file(const std::filesystem::path& path, uint64_t max_bytes) {
  const File file = File::open_read(path);
  std::string content;
  const uint64_t expected = file.size_bytes();
  if (expected > max_bytes) {
    throw DataError("{}: {} bytes, expected at most {}", path.string(), expected, max_bytes);
  }
  // The size is a hint only: pipes and /proc say 0, and a file may grow while it is read.
  constexpr size_t kChunk = size_t{1} << 16;
  size_t filled = 0;
  content.resize(expected + 1);
  while (true) {
    const ssize_t got = ::read(file.descriptor(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(path, "cannot read");
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    if (filled > max_bytes) throw DataError("{}: more than {} bytes", path.string(), max_bytes);
    if (filled == content.size()) content.resize(filled + std::max(kChunk, filled / 2));
  }
  content.resize(filled);
  return content;
}

void fsync_directory(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory.empty() ? "." : directory;
  const int fd = open_or_throw(path, O_RDONLY | O_DIRECTORY, "cannot open directory");
  const int failed = ::fsync(fd);
  const int code = errno;
  ::close(fd);
  // Some network file systems refuse fsync on a directory; the rename is as durable there as it
  // gets.
  if (failed != 0 && code != EINVAL && code != ENOTSUP) {
    throw IoError("{}: cannot fsync directory: {}", path.string(), errno_text(code));
  }
}

void write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path aside = path;
  aside += ".tmp." + std::to_string(::getpid());
  try {
    File file = File::create(aside);
    file.write(content);
    file.sync();
    file.close();
    if (::rename(aside.c_str(), path.c_str()) != 0) throw_errno(path, "cannot rename into place");
  } catch (const Error&) {
    ::unlink(aside.c_str());
    throw;
  }
  fsync_directory(path.parent_path());
}

File File::open_read(const std::filesystem::path& path) {
  return {path, open_or_throw(path, O_RDONLY, "cannot open")};
}

File File::create(const std::filesystem::path& path, bool append) {
  const int mode = append ? O_APPEND : O_TRUNC;
  return {path, open_or_throw(path, O_RDWR | O_CREAT | mode, "cannot create")};
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

uint64_t File::size_bytes() const { return size_of(path_, fd_); }

void File::read_at(uint64_t offset, std::span<std::byte> out) const {
  size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t got =
        ::pread(fd_, out.data() + filled, out.size() - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(path_, "cannot read");
    if (got == 0) {
      throw DataError("{}: truncated: {} bytes wanted at byte {}, the file ends after {}",
                      path_.string(), out.size(), offset, filled);
    }
    filled += static_cast<size_t>(got);
  }
}

void File::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_errno(path_, "cannot write");
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void File::sync() {
  if (::fsync(fd_) != 0 && errno != EINVAL) throw_errno(path_, "cannot fsync");
}

void File::close() {
  if (fd_ < 0) return;
  if (::close(std::exchange(fd_, -1)) != 0) throw_errno(path_, "cannot close");
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const File file = File::open_read(path);
  const uint64_t size = file.size_bytes();
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (address == MAP_FAILED) throw_errno(path, "cannot map");
  data_ = address;
  size_bytes_ = size;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_bytes_);
}

}  // namespace mm
