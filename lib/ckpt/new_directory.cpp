#include "lib/ckpt/new_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/file.h"

namespace fs = std::filesystem;

namespace mm::ckpt {

NewDirectory::NewDirectory(const fs::path& out)
    : final_(out.has_filename() ? out : out.parent_path()),
      aside_(final_.string() + fmt::format(".tmp-{}", ::getpid())) {
  if (fs::exists(final_) || fs::is_symlink(final_))
    throw UsageError("{}: exists already; choose another name or remove it", final_.string());
  fs::remove_all(aside_);
  std::error_code error;
  if (!fs::create_directories(aside_, error))
    throw IoError("{}: cannot be made: {}", aside_.string(), error.message());
}

NewDirectory::~NewDirectory() {
  std::error_code ignored;
  fs::remove_all(aside_, ignored);
}

void NewDirectory::commit() {
  fsync_directory(aside_);
  std::error_code error;
  fs::rename(aside_, final_, error);
  if (error) throw IoError("{}: cannot be renamed: {}", aside_.string(), error.message());
  fsync_directory(fs::absolute(final_).parent_path());
}

}  // namespace mm::ckpt
