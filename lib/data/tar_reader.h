#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace mm::data {

/// A member of a tar: a regular file, or a link (whose content stands elsewhere).
struct TarMember {
  std::string path;  ///< as stored, without "./" in front
  bool is_link = false;
};

/// Regular files of a tar (V7, ustar, PAX, GNU), plain or compressed by gzip or zstd, front to back
/// by libarchive. Directories, devices, AppleDouble files ("._name"), and everything else that is
/// no file or link are passed over. Content is read only on request. Memory is that of a block; of
/// a compressed file, its window. Not thread-safe.
class TarReader {
 public:
  /// Throws IoError. What is wrong with the content shows in `next`.
  explicit TarReader(std::filesystem::path path);
  ~TarReader();
  TarReader(const TarReader&) = delete;

  /// Nothing at the end, or where the archive is damaged or cut off: then `problem` says so.
  std::optional<TarMember> next();
  /// Content of the member, once. Nothing if it is longer than `max_bytes` (`problem` stays empty)
  /// or damaged. Grows with what is really there, whatever the header claims.
  std::optional<std::string> content(uint64_t max_bytes);
  /// Why reading ended before the end of the file; empty while all is well.
  const std::string& problem() const { return problem_; }

 private:
  void note_problem();
  struct Handle;
  const std::filesystem::path path_;
  std::unique_ptr<Handle> handle_;
  std::string problem_;
};

}  // namespace mm::data
