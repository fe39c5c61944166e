#pragma once
#include <unistd.h>

#include <filesystem>
#include <string>

namespace mm::ckpt::test {

/// A fresh directory that goes away with the object; in memory where there is such a place, since
/// saves fsync a lot.
class TempDir {
 public:
  TempDir() {
    const char* memory = "/dev/shm";
    const bool usable = ::access(memory, W_OK | X_OK) == 0;
    const std::filesystem::path base = usable ? memory : std::filesystem::temp_directory_path();
    std::string name = (base / "mm_ckpt_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TempDir(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace mm::ckpt::test
