#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mm::data {

/// A file of the idx form (MNIST and its kin), plain or compressed, read from front to back: magic
/// 0 0 TYPE DIMENSIONS, the sizes as big-endian u32, then the numbers; unsigned bytes only. The
/// header is not believed: an item takes memory only as its bytes arrive. Not thread-safe.
class IdxFile {
 public:
  /// `dimensions`: what the file must have, the items' number included. Throws IoError, DataError
  /// naming what does not fit (type, dimensions, an item of 0 or over 2^28 bytes).
  IdxFile(const std::filesystem::path& path, size_t dimensions);
  ~IdxFile();
  IdxFile(const IdxFile&) = delete;

  uint64_t items() const { return sizes_.front(); }
  /// [dimensions - 1] sizes of an item.
  std::span<const uint32_t> item_sizes() const { return std::span(sizes_).subspan(1); }
  /// The next item; false when all were read. Throws DataError if the file ends before.
  bool next(std::vector<uint8_t>& item);

 private:
  struct Input;
  void read(std::span<std::byte> to);
  const std::filesystem::path path_;
  std::unique_ptr<Input> in_;
  std::vector<uint32_t> sizes_;
  uint64_t item_bytes_ = 1, read_ = 0;
};

/// "train-images-idx3-ubyte.gz" gives "train-labels-idx1-ubyte.gz", in the same folder; nothing for
/// names without "images" and "idx3".
std::optional<std::filesystem::path> labels_beside(const std::filesystem::path& images);

}  // namespace mm::data
