#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/ckpt/checkpoint_manifest.h"

namespace mm::ckpt {

enum class VerifyDepth {
  kStructure,  ///< COMMIT, manifest, boxes, sizes, shard headers, save ids: reads no tensor
  kChecksums,  ///< all of that and every byte against CRC-32C per block and XXH3-128 per file
};

struct VerifyOptions {
  VerifyDepth depth = VerifyDepth::kChecksums;
  int threads = 1;            ///< files read at once; 0: all cores
  size_t max_problems = 100;  ///< further ones are counted only
};

/// `problems` are lines that name file, block, tensor and elements, e.g.
/// "shard-rank-00003.safetensors: block 17 (bytes 17825792 to 18874368): crc32c 0badcafe, 1f2e3d4c
/// expected; holds tensor 'llm.layers.4.mlp.up' elements 512 to 768".
struct VerifyReport {
  std::vector<std::string> problems;
  uint64_t problem_count = 0;
  uint64_t files = 0;
  uint64_t tensors = 0;
  uint64_t bytes_read = 0;
  uint64_t save_step = 0;
  std::string save_id;
  std::vector<std::string> notes;  ///< odd, not wrong
  bool ok() const { return problem_count == 0; }
};

/// Checks one checkpoint directory (with COMMIT). What is wrong with the files is in the report;
/// throws only InternalError.
VerifyReport verify_checkpoint(const std::filesystem::path& directory,
                               const VerifyOptions& options = {});

/// The same for files against a manifest already read; does not look for COMMIT.
VerifyReport verify_files(const std::filesystem::path& directory, const Manifest& manifest,
                          const VerifyOptions& options = {});

}  // namespace mm::ckpt
