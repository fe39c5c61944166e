#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace mm::data {

/// Writes a ustar file whose bytes depend on its members alone: mode 0644, no times, no owners.
/// Durable after `finish`. Not thread-safe. Throws IoError.
class TarFile {
 public:
  explicit TarFile(std::filesystem::path path);
  ~TarFile();
  TarFile(const TarFile&) = delete;
  void add(const std::string& name, std::string_view content);
  /// Content so far, without headers.
  uint64_t content_bytes() const { return content_bytes_; }
  void finish();

 private:
  void check(int code) const;
  struct Handle;
  const std::filesystem::path path_;
  std::unique_ptr<Handle> handle_;
  uint64_t content_bytes_ = 0;
};

}  // namespace mm::data
