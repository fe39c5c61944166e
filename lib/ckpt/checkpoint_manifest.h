#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"
#include "lib/ckpt/block_checksums.h"
#include "lib/ckpt/dtype.h"
#include "lib/ckpt/element_box.h"

namespace mm::ckpt {

inline constexpr std::string_view kManifestFormat = "mmkit-checkpoint";
inline constexpr uint64_t kManifestVersion = 1;
inline constexpr std::string_view kManifestName = "manifest.json";
/// Key of a shard's __metadata__ that must equal the manifest's save_id.
inline constexpr std::string_view kSaveIdKey = "mmkit.save_id";

/// A part of a tensor: which file of the manifest holds it, under which name there, and which
/// elements it is.
struct Piece {
  size_t file = 0;
  std::string tensor;
  ElementBox box;
};

/// A tensor as the model knows it, whatever the layout that saved it. Its pieces tile it exactly.
struct TensorRecord {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;
  std::vector<Piece> pieces;
};

struct FileRecord {
  std::string name;  ///< in the checkpoint's directory; no path
  FileChecksums checksums;
};

/// A checkpoint's table of contents (docs/formats.md). `state` is what the trainer wants back:
/// schedule, plan position, random seeds, ledger, recipe hash, code version; this library keeps it
/// as it is.
struct Manifest {
  std::string save_id;           ///< 32 hexadecimal digits, drawn for this save
  std::string previous_save_id;  ///< the save that this run's state came from; empty at first
  uint64_t step = 0;             ///< global step: this many updates are in the weights
  uint64_t world_size = 1;
  std::vector<FileRecord> files;
  std::vector<TensorRecord> tensors;  ///< sorted by name
  Json state = Json::object();
};

/// JSON text that ends in a line feed; the same manifest gives the same bytes.
std::string encode_manifest(const Manifest& manifest);

/// Throws DataError that begins with `origin`: not a manifest; written by a newer version (says
/// which mmkit is needed); names, sizes or checksums malformed; a tensor twice; a tensor whose
/// boxes do not tile it. No other file is read.
Manifest decode_manifest(std::string_view text, std::string_view origin);

/// 32 random hexadecimal digits from the kernel.
std::string new_save_id();

}  // namespace mm::ckpt
