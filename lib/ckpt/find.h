#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/ckpt/checkpoint_manifest.h"
#include "lib/ckpt/layout.h"
#include "lib/ckpt/verify.h"

namespace mm::ckpt {

/// A directory of RUN/ckpt that a save made or began.
struct ListedCheckpoint {
  std::filesystem::path path;
  StepDirectory kind;
  bool committed = false;  ///< has a file COMMIT; nothing else is known of it
};

/// All of them, newest step first, one moved aside behind its replacement. An absent directory
/// holds none. Throws IoError.
std::vector<ListedCheckpoint> list_checkpoints(const std::filesystem::path& run_ckpt);

/// A checkpoint that was not taken, and why.
struct PassedOver {
  std::filesystem::path path;
  std::string reason;
};

struct FoundCheckpoint {
  std::filesystem::path path;  ///< empty: none, start afresh
  Manifest manifest;
  std::vector<PassedOver> passed_over;
  bool found() const { return !path.empty(); }
};

/// The newest checkpoint that is committed and, to `depth`, whole. Broken ones are passed over with
/// the reason; nothing is deleted or changed. Nothing found: RUN/ckpt holds no step directory
/// (temporary ones of unfinished saves do not count). Throws DataError if there are step
/// directories and none is whole: starting afresh over them would lose work.
FoundCheckpoint find_newest(const std::filesystem::path& run_ckpt,
                            const VerifyOptions& options = {});

}  // namespace mm::ckpt
