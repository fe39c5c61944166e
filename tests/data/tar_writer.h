#pragma once
#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace mm::data::test {

enum class TarKind { kUstar, kPax, kGnu, kV7 };
enum class TarFilter { kNone, kGzip, kZstd };

/// Writes a tar for tests.
class TarWriter {
 public:
  explicit TarWriter(const std::filesystem::path& path, TarKind kind = TarKind::kUstar,
                     TarFilter filter = TarFilter::kNone)
      : out_(archive_write_new()) {
    if (kind == TarKind::kUstar) archive_write_set_format_ustar(out_);
    if (kind == TarKind::kPax) archive_write_set_format_pax(out_);
    if (kind == TarKind::kGnu) archive_write_set_format_gnutar(out_);
    if (kind == TarKind::kV7) archive_write_set_format_v7tar(out_);
    if (filter == TarFilter::kGzip) archive_write_add_filter_gzip(out_);
    if (filter == TarFilter::kZstd) archive_write_add_filter_zstd(out_);
    archive_write_set_options(out_, "hdrcharset=BINARY");
    archive_write_open_filename(out_, path.c_str());
  }
  ~TarWriter() { archive_write_free(out_); }
  TarWriter(const TarWriter&) = delete;

  TarWriter& add(const std::string& path, std::string_view content) {
    archive_entry* entry = make(path, AE_IFREG, static_cast<la_int64_t>(content.size()));
    archive_write_header(out_, entry);
    archive_write_data(out_, content.data(), content.size());
    archive_entry_free(entry);
    return *this;
  }
  TarWriter& add_directory(const std::string& path) { return add_head(make(path, AE_IFDIR, 0)); }
  TarWriter& add_link(const std::string& path, const std::string& target, bool hard) {
    archive_entry* entry = make(path, hard ? AE_IFREG : AE_IFLNK, 0);
    if (hard) archive_entry_set_hardlink(entry, target.c_str());
    if (!hard) archive_entry_set_symlink(entry, target.c_str());
    return add_head(entry);
  }
  void close() { archive_write_close(out_); }

 private:
  static archive_entry* make(const std::string& path, mode_t type, la_int64_t bytes) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, path.c_str());
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, bytes);
    return entry;
  }
  TarWriter& add_head(archive_entry* entry) {
    archive_write_header(out_, entry);
    archive_entry_free(entry);
    return *this;
  }
  archive* out_;
};

}  // namespace mm::data::test
