#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/ckpt/safetensors_writer.h"
#include "lib/ckpt/verify.h"

namespace mm::ckpt {

struct RetentionOptions {
  uint64_t keep_last = 2;   ///< newest committed checkpoints that stay; below 2 is taken as 2
  uint64_t keep_every = 0;  ///< steps that are a multiple stay for good; 0: none
  VerifyDepth verify =
      VerifyDepth::kChecksums;  ///< how the newest is checked before anything older goes
};

struct RetentionResult {
  std::vector<std::filesystem::path> deleted;
  std::string
      held_back;  ///< why nothing was deleted although something was due; empty: all went well
};

/// Deletes committed checkpoints that are superseded, oldest first, after the newest one verified.
/// Uncommitted, temporary and broken directories stay (they are evidence; `mmckpt prune` removes
/// them). A deletion first renames COMMIT, durably, so that half a directory is never taken for
/// whole; one that was cut short is finished here. Throws IoError. Fault points:
/// "retention.unmarked", "retention.deleted".
RetentionResult apply_retention(const std::filesystem::path& run_ckpt,
                                const RetentionOptions& options, const FaultHook& hook = {});

}  // namespace mm::ckpt
