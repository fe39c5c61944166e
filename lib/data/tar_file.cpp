#include "lib/data/tar_file.h"

#include <archive.h>
#include <archive_entry.h>

#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"

namespace mm::data {

struct TarFile::Handle {
  explicit Handle(const std::filesystem::path& path)
      : file(File::create(path)), out(archive_write_new()), entry(archive_entry_new()) {}
  ~Handle() {
    archive_entry_free(entry);
    archive_write_free(out);
  }
  Handle(const Handle&) = delete;
  File file;
  archive* out;
  archive_entry* entry;
};

TarFile::TarFile(std::filesystem::path path)
    : path_(std::move(path)), handle_(std::make_unique<Handle>(path_)) {
  check(archive_write_set_format_ustar(handle_->out));
  check(archive_write_open_fd(handle_->out, handle_->file.descriptor()));
}

TarFile::~TarFile() = default;

void TarFile::check(int code) const {
  if (code == ARCHIVE_OK) return;
  throw IoError("{}: cannot write: {}", path_.string(), archive_error_string(handle_->out));
}

void TarFile::add(const std::string& name, std::string_view content) {
  archive_entry* entry = archive_entry_clear(handle_->entry);
  archive_entry_set_pathname(entry, name.c_str());
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
  archive_entry_set_mtime(entry, 0, 0);
  check(archive_write_header(handle_->out, entry));
  if (archive_write_data(handle_->out, content.data(), content.size()) !=
      static_cast<la_ssize_t>(content.size())) {
    throw IoError("{}: cannot write: {}", path_.string(), archive_error_string(handle_->out));
  }
  content_bytes_ += content.size();
}

void TarFile::finish() {
  check(archive_write_close(handle_->out));
  handle_->file.sync();
  handle_->file.close();
}

}  // namespace mm::data
