#pragma once
#include <filesystem>
#include <string_view>

namespace mm::ckpt {

/// What a path given on a command line is.
enum class TargetKind {
  kFile,         ///< a safetensors file
  kHuggingFace,  ///< a directory with model.safetensors or its index
  kCheckpoint,   ///< one of our checkpoints: step-00001200
  kRun,          ///< a directory with our checkpoints: RUN/ckpt
};
std::string_view target_name(TargetKind kind);

struct Target {
  TargetKind kind;
  std::filesystem::path path;
};

/// Looks at names only. RUN becomes RUN/ckpt. Throws IoError if the path does not exist, DataError
/// if it is none of the four.
Target resolve_target(const std::filesystem::path& path);

}  // namespace mm::ckpt
