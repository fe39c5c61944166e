#include "lib/data/unpacked_file.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"

namespace mm::data {
namespace {

using namespace std::string_view_literals;
constexpr size_t kBlockBytes = 256 << 10;
constexpr std::array kMagics{"\x1f\x8b"sv, "\x28\xb5\x2f\xfd"sv, "\xfd\x37zXZ\0"sv, "BZh"sv};

}  // namespace

bool is_compressed(const std::filesystem::path& path) {
  const File file = File::open_read(path);
  std::string head(std::min<uint64_t>(file.size_bytes(), 6), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(head)));
  return std::any_of(kMagics.begin(), kMagics.end(),
                     [&](std::string_view magic) { return head.starts_with(magic); });
}

struct UnpackedFile::Handle {
  archive* in = archive_read_new();
  archive_entry* entry = nullptr;
  ~Handle() { archive_read_free(in); }
};

UnpackedFile::UnpackedFile(std::filesystem::path path)
    : path_(std::move(path)), handle_(std::make_unique<Handle>()) {
  File::open_read(path_);  // says what is wrong in our words
  archive* in = handle_->in;
  archive_read_support_filter_gzip(in);
  archive_read_support_filter_zstd(in);
  archive_read_support_filter_xz(in);
  archive_read_support_filter_bzip2(in);
  archive_read_support_format_raw(in);
  if (archive_read_open_filename(in, path_.c_str(), kBlockBytes) != ARCHIVE_OK) fail();
  if (archive_read_next_header(in, &handle_->entry) != ARCHIVE_OK) fail();
}

UnpackedFile::~UnpackedFile() = default;

void UnpackedFile::fail() const {
  const char* message = archive_error_string(handle_->in);
  throw DataError("{}: cannot be unpacked: {}", path_.string(),
                  message == nullptr ? "damaged or cut off" : message);
}

size_t UnpackedFile::read(std::span<std::byte> out) {
  const la_ssize_t got = archive_read_data(handle_->in, out.data(), out.size());
  if (got < 0) fail();
  return static_cast<size_t>(got);
}

}  // namespace mm::data
