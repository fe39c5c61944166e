#include "lib/ckpt/layout.h"

#include <fmt/format.h>

#include <charconv>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"

namespace mm::ckpt {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr size_t kStepDigits = 8;
constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 31;
constexpr uint64_t kMaxCommitBytes = 4096;

}  // namespace

std::string step_directory_name(uint64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

std::string shard_name(int rank) { return fmt::format("shard-rank-{:05}.safetensors", rank); }

std::optional<StepDirectory> parse_step_directory(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  StepDirectory found;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), found.step);
  const size_t digits = static_cast<size_t>(end - name.data());
  if (error != std::errc() || digits < kStepDigits) return std::nullopt;
  const std::string_view suffix = name.substr(digits);
  found.temporary = suffix.starts_with(".tmp-");
  found.replaced = suffix.starts_with(".replaced-");
  if (!suffix.empty() && !found.temporary && !found.replaced) return std::nullopt;
  return found;
}

std::string commit_text(const Manifest& manifest, std::string_view manifest_text) {
  return fmt::format(
      "{{\"format\":\"mmkit-commit\",\"version\":1,\"step\":{},\"save_id\":\"{}\",\"manifest_xxh3_"
      "128\":\"{}\"}}\n",
      manifest.step, manifest.save_id, xxh3_128_hex(manifest_text));
}

Manifest read_committed_manifest(const std::filesystem::path& directory) {
  const auto commit_path = directory / kCommitName;
  if (!std::filesystem::exists(commit_path)) {
    const bool deleted = std::filesystem::exists(directory / kDeletedName);
    throw DataError(
        "{}: {}", directory.string(),
        deleted ? "its deletion was begun by retention" : "no COMMIT: the save was not finished");
  }
  const auto path = directory / kManifestName;
  const std::string text = read_file(path, kMaxManifestBytes);
  // The format version is looked at before the checksum: a newer version may seal its manifest in
  // another way.
  Manifest manifest = decode_manifest(text, path.string());
  if (read_file(commit_path, kMaxCommitBytes) != commit_text(manifest, text)) {
    throw DataError("{}: does not belong to {}: step, save id or manifest checksum differ",
                    commit_path.string(), path.string());
  }
  return manifest;
}

}  // namespace mm::ckpt
