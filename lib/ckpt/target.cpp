#include "lib/ckpt/target.h"

#include "lib/base/error.h"
#include "lib/ckpt/find.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/layout.h"

namespace mm::ckpt {

std::string_view target_name(TargetKind kind) {
  switch (kind) {
    case TargetKind::kFile:
      return "safetensors file";
    case TargetKind::kHuggingFace:
      return "Hugging Face directory";
    case TargetKind::kCheckpoint:
      return "checkpoint";
    case TargetKind::kRun:
      return "checkpoints of a run";
  }
  throw InternalError("unknown kind of target");
}

Target resolve_target(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw IoError("{}: no such file or directory", path.string());
  if (!fs::is_directory(status)) return {TargetKind::kFile, path};
  // "step-1/" has an empty last component.
  const fs::path named = path.has_filename() ? path : path.parent_path();
  const bool ours = fs::exists(path / kManifestName) && fs::exists(path / kCommitName);
  if (ours || parse_step_directory(named.filename().string()))
    return {TargetKind::kCheckpoint, path};
  if (HfWeights::looks_like(path)) return {TargetKind::kHuggingFace, path};
  if (!list_checkpoints(path).empty()) return {TargetKind::kRun, path};
  if (!list_checkpoints(path / "ckpt").empty()) return {TargetKind::kRun, path / "ckpt"};
  throw DataError(
      "{}: holds no checkpoint: a safetensors file, a directory with model.safetensors or its "
      "index, step-NNNNNNNN, RUN/ckpt or RUN expected{}",
      path.string(), pickled_weights_advice(path));
}

}  // namespace mm::ckpt
