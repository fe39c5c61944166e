#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lib/ckpt/checkpoint_manifest.h"

namespace mm::ckpt {

// Names in a run's checkpoint directory (RUN/ckpt):
//   step-00001200/                   shard-rank-00000.safetensors ..., manifest.json, COMMIT
//   step-00001200.tmp-<save id>/     being written, or left by a crash; never read
//   step-00001200.replaced-<save id>/ an older save of the same step, moved aside by the save of
//   that id latest                           name of the newest committed directory, for people

inline constexpr std::string_view kCommitName = "COMMIT";
/// What retention turns COMMIT into before it deletes a directory.
inline constexpr std::string_view kDeletedName = "COMMIT.deleted";
inline constexpr std::string_view kLatestName = "latest";

std::string step_directory_name(uint64_t step);
std::string shard_name(int rank);

/// A directory name taken apart.
struct StepDirectory {
  uint64_t step = 0;
  bool temporary = false;
  bool replaced = false;
};
/// Nothing if `name` is not one of ours.
std::optional<StepDirectory> parse_step_directory(std::string_view name);

/// The text of COMMIT: it binds step, save id and the manifest's XXH3-128. Readers compare all
/// bytes.
std::string commit_text(const Manifest& manifest, std::string_view manifest_text);

/// The manifest of a checkpoint directory after all checks that need no other file than COMMIT and
/// manifest.json. Throws DataError (no COMMIT; COMMIT and manifest do not belong together; see
/// decode_manifest) or IoError.
Manifest read_committed_manifest(const std::filesystem::path& directory);

}  // namespace mm::ckpt
