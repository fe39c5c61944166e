#include "lib/data/tar_reader.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"

namespace mm::data {
namespace {

constexpr size_t kBlockBytes = 256 << 10;

std::string_view basename_of(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

/// Path of an entry as bytes; archives of another locale give theirs unchanged.
std::string path_of(archive_entry* entry) {
  const char* name = archive_entry_pathname(entry);
  if (name == nullptr) name = archive_entry_pathname_utf8(entry);
  std::string path = name == nullptr ? "" : name;
  while (path.starts_with("./")) path.erase(0, 2);
  return path;
}

}  // namespace

struct TarReader::Handle {
  archive* in = archive_read_new();
  archive_entry* entry = nullptr;
  ~Handle() { archive_read_free(in); }
};

TarReader::TarReader(std::filesystem::path path)
    : path_(std::move(path)), handle_(std::make_unique<Handle>()) {
  File::open_read(path_);  // says what is wrong in our words
  archive* in = handle_->in;
  archive_read_support_filter_gzip(in);
  archive_read_support_filter_zstd(in);
  archive_read_support_format_tar(in);
  if (archive_read_open_filename(in, path_.c_str(), kBlockBytes) != ARCHIVE_OK) note_problem();
}

TarReader::~TarReader() = default;

void TarReader::note_problem() {
  const char* message = archive_error_string(handle_->in);
  problem_ = fmt::format("{}: {}", path_.string(),
                         message == nullptr ? "no tar, or a damaged one" : message);
}

std::optional<TarMember> TarReader::next() {
  while (problem_.empty()) {
    const int code = archive_read_next_header(handle_->in, &handle_->entry);
    if (code == ARCHIVE_EOF) return std::nullopt;
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) {
      note_problem();
      return std::nullopt;
    }
    TarMember member{path_of(handle_->entry)};
    member.is_link = archive_entry_hardlink(handle_->entry) != nullptr ||
                     archive_entry_filetype(handle_->entry) == AE_IFLNK;
    const bool is_file = member.is_link || archive_entry_filetype(handle_->entry) == AE_IFREG;
    const auto name = basename_of(member.path);
    if (is_file && !name.empty() && !name.starts_with("._")) return member;
  }
  return std::nullopt;
}

std::optional<std::string> TarReader::content(uint64_t max_bytes) {
  std::string all;
  std::array<char, 64 << 10> block;
  for (;;) {
    const la_ssize_t got = archive_read_data(handle_->in, block.data(), block.size());
    if (got == 0) return all;
    if (got < 0) {
      note_problem();
      return std::nullopt;
    }
    if (static_cast<uint64_t>(got) > max_bytes - all.size()) return std::nullopt;
    all.append(block.data(), static_cast<size_t>(got));
  }
}

}  // namespace mm::data
