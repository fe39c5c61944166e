#include "lib/ckpt/commit.h"

#include <fmt/format.h>

#include <array>
#include <system_error>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/layout.h"
#include "lib/ckpt/verify.h"

namespace mm::ckpt {
namespace {

constexpr std::array<std::string_view, 15> kFaultPoints = {
    "save.begun",       "file.header",        "file.half",          "file.written",
    "file.synced",      "file.renamed",       "save.shard",         "save.manifest",
    "save.moved_aside", "save.renamed",       "save.parent_synced", "save.committed",
    "save.latest",      "retention.unmarked", "retention.deleted",
};

// Two parts of a tensor in one file need two names; the offset tells them apart for readers that
// know nothing of us.
std::string name_in_file(const ShardTensor& tensor, const ElementBox& box) {
  if (box == whole_box(tensor.global_shape)) return tensor.name;
  std::string name = tensor.name + "@";
  for (size_t d = 0; d < box.offset.size(); ++d)
    name += fmt::format("{}{}", d == 0 ? "" : ",", box.offset[d]);
  return name;
}

ElementBox box_of(const ShardTensor& tensor) {
  const bool unset = tensor.box.offset.empty() && tensor.box.shape.empty();
  return unset ? whole_box(tensor.global_shape) : tensor.box;
}

void rename_or_throw(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error)
    throw IoError("{}: cannot rename to {}: {}", from.string(), to.string(), error.message());
}

}  // namespace

std::span<const std::string_view> fault_points() { return kFaultPoints; }

CheckpointWriter::CheckpointWriter(SaveInfo info, FaultHook hook)
    : info_(std::move(info)), hook_(std::move(hook)) {
  temporary_ =
      info_.run_ckpt / fmt::format("{}.tmp-{}", step_directory_name(info_.step), info_.save_id);
}

void CheckpointWriter::point(std::string_view name) const {
  if (hook_) hook_(name);
}

void CheckpointWriter::begin() {
  std::error_code error;
  std::filesystem::create_directories(temporary_, error);
  if (error)
    throw IoError("{}: cannot make the directory: {}", temporary_.string(), error.message());
  point("save.begun");
}

ShardReport CheckpointWriter::write_shard(std::span<const ShardTensor> tensors) {
  ShardReport report;
  std::vector<TensorSource> sources;
  for (const ShardTensor& tensor : tensors) {
    const ElementBox box = box_of(tensor);
    const std::string name = name_in_file(tensor, box);
    sources.push_back({name, tensor.dtype, box.shape, tensor.bytes, tensor.stream});
    report.tensors.push_back({tensor.name, tensor.dtype, tensor.global_shape, {{0, name, box}}});
  }
  report.file.name = shard_name(info_.rank);
  const Metadata metadata = {{std::string(kSaveIdKey), info_.save_id},
                             {"mmkit.step", std::to_string(info_.step)},
                             {"mmkit.rank", std::to_string(info_.rank)}};
  report.file.checksums =
      write_safetensors(temporary_ / report.file.name, sources, metadata, hook_).checksums;
  point("save.shard");
  return report;
}

std::filesystem::path CheckpointWriter::commit(std::span<const ShardReport> reports, Json state) {
  const Manifest manifest = merge_reports(info_, reports, std::move(state));
  const std::string text = encode_manifest(manifest);
  write_file_atomic(temporary_ / kManifestName, text);
  point("save.manifest");
  const VerifyReport check = verify_files(temporary_, manifest, {.depth = VerifyDepth::kStructure});
  if (!check.ok()) {
    throw DataError("{}: not committed: {}", temporary_.string(), check.problems.front());
  }
  const std::filesystem::path directory = info_.run_ckpt / step_directory_name(info_.step);
  move_into_place(directory);
  write_file_atomic(directory / kCommitName, commit_text(manifest, text));
  point("save.committed");
  write_file_atomic(info_.run_ckpt / kLatestName, directory.filename().string() + "\n");
  point("save.latest");
  return directory;
}

void CheckpointWriter::move_into_place(const std::filesystem::path& final_directory) {
  if (std::filesystem::exists(final_directory)) {
    std::filesystem::path aside = final_directory;
    aside += ".replaced-" + info_.save_id;
    rename_or_throw(final_directory, aside);
    point("save.moved_aside");
  }
  rename_or_throw(temporary_, final_directory);
  point("save.renamed");
  fsync_directory(info_.run_ckpt);
  point("save.parent_synced");
}

void CheckpointWriter::abort() noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(temporary_, ignored);
}

}  // namespace mm::ckpt
