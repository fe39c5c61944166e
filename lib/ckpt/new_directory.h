#pragma once
#include <filesystem>

namespace mm::ckpt {

/// A directory that is built aside, as OUT.tmp-PID, and appears under its name at commit(), whole,
/// or not at all: what is not committed goes away with the object.
class NewDirectory {
 public:
  /// "out/" is "out". Throws UsageError when `out` exists already, IoError when it cannot be made.
  explicit NewDirectory(const std::filesystem::path& out);
  NewDirectory(const NewDirectory&) = delete;
  ~NewDirectory();

  /// Where to write.
  const std::filesystem::path& path() const { return aside_; }
  /// Syncs and renames. Throws IoError.
  void commit();

 private:
  std::filesystem::path final_, aside_;
};

}  // namespace mm::ckpt
