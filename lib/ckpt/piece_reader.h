#pragma once
#include <filesystem>
#include <map>

#include "lib/ckpt/checkpoint_manifest.h"
#include "lib/ckpt/safetensors.h"
#include "lib/ckpt/safetensors_writer.h"

namespace mm::ckpt {

/// Hands a tensor of a file out in parts of a few megabytes.
void stream_entry(const SafetensorsFile& file, const TensorEntry& entry, const ByteSink& sink);

/// Whole tensors of a checkpoint from the pieces that its ranks wrote. Files are opened once each,
/// when first needed. One thread.
class PieceReader {
 public:
  PieceReader(std::filesystem::path directory, Manifest manifest);

  const Manifest& manifest() const { return manifest_; }
  /// `record`: of manifest(). A tensor of one piece streams; of several it is put together in
  /// memory first. Throws DataError when a file's entry is not what the manifest says.
  void stream(const TensorRecord& record, const ByteSink& sink) const;

 private:
  const SafetensorsFile& file(size_t index) const;
  const TensorEntry& entry(const TensorRecord& record, const Piece& piece) const;

  std::filesystem::path directory_;
  Manifest manifest_;
  mutable std::map<size_t, SafetensorsFile> open_;
};

}  // namespace mm::ckpt
