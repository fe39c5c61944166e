#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ckpt/block_checksums.h"
#include "lib/ckpt/safetensors_header.h"

namespace mm::ckpt {

/// Takes the next bytes of a tensor.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// A tensor to write: packed row-major little-endian bytes, either all at once or handed out in
/// parts.
struct TensorSource {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;
  std::span<const std::byte>
      bytes;  ///< used if `stream` is empty; must live until the write returns
  std::function<void(const ByteSink&)>
      stream;  ///< calls the sink in order, exactly the tensor's bytes in all
};

/// Called at named moments of a write, for tests that kill the process there; empty: nothing.
using FaultHook = std::function<void(std::string_view point)>;

/// What a write left behind.
struct WrittenFile {
  std::vector<TensorEntry> tensors;  ///< in file order
  FileChecksums checksums;
};

/// Writes a safetensors file by law 4: aside, fsync, rename, fsync of the directory. The bytes
/// depend only on tensors and metadata: tensors by descending alignment, then by name; metadata
/// sorted, with "format": "pt" added if absent; header padded with blanks so that the data starts
/// at a multiple of 8. Checksums are computed on the way. Holds no tensor in memory. Throws
/// DataError for what the format cannot hold (a name twice, empty or not UTF-8; a header above
/// 100,000,000 bytes; bytes that do not match shape and dtype), IoError from the file system; then
/// nothing is left at `path` that was not there before. Fault points: "file.header", "file.half",
/// "file.written", "file.synced", "file.renamed".
WrittenFile write_safetensors(const std::filesystem::path& path,
                              std::span<const TensorSource> tensors, const Metadata& metadata = {},
                              const FaultHook& hook = {});

}  // namespace mm::ckpt
