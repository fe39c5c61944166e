#include "lib/ckpt/inspect.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/ckpt/find.h"
#include "lib/ckpt/hf_index.h"

namespace mm::ckpt {
namespace {

void add_file(const SafetensorsFile& file, Inspection& out) {
  const size_t index = out.files.size();
  out.files.push_back({file.path().filename().string(), file.file_bytes(), file.tensors().size()});
  for (const TensorEntry& entry : file.tensors()) {
    out.tensors.push_back({entry.name,
                           entry.dtype,
                           entry.shape,
                           entry.size_bytes(),
                           {{index, whole_box(entry.shape)}}});
  }
}

void add_file_notes(const SafetensorsFile& file, Inspection& out) {
  for (const std::string& note : file.notes())
    out.notes.push_back(file.path().string() + ": " + note);
}

void add_checkpoint(const std::filesystem::path& directory, const Manifest& manifest,
                    Inspection& out) {
  const VerifyReport report = verify_files(directory, manifest, {.depth = VerifyDepth::kStructure});
  if (!report.ok()) throw DataError("{}", report.problems.front());
  out.notes.insert(out.notes.end(), report.notes.begin(), report.notes.end());
  for (const FileRecord& file : manifest.files)
    out.files.push_back({file.name, file.checksums.size_bytes, 0});
  for (const TensorRecord& tensor : manifest.tensors) {
    InspectedTensor shown{tensor.name,
                          tensor.dtype,
                          tensor.shape,
                          packed_bytes(tensor.dtype, tensor.shape).value(),
                          {}};
    for (const Piece& piece : tensor.pieces) {
      shown.pieces.push_back({piece.file, piece.box});
      out.files[piece.file].tensors += 1;
    }
    out.tensors.push_back(std::move(shown));
  }
  out.checkpoint["step"] = manifest.step;
  out.checkpoint["save_id"] = manifest.save_id;
  out.checkpoint["previous_save_id"] = manifest.previous_save_id;
  out.checkpoint["world_size"] = manifest.world_size;
  out.checkpoint["state"] = manifest.state;
}

void add_newest(const std::filesystem::path& run_ckpt, Inspection& out) {
  const FoundCheckpoint found = find_newest(run_ckpt, {.depth = VerifyDepth::kStructure});
  if (!found.found())
    throw DataError("{}: no finished checkpoint, only saves that were cut short",
                    run_ckpt.string());
  for (const PassedOver& passed : found.passed_over) {
    out.notes.push_back(fmt::format("passed over {}: {}", passed.path.string(), passed.reason));
  }
  out.target.path = found.path;
  add_checkpoint(found.path, found.manifest, out);
}

/// What an adapter is, in one line; its odd settings are for open_peft to refuse.
void note_adapter(const std::filesystem::path& directory, Inspection& out) {
  const std::filesystem::path path = directory / "adapter_config.json";
  if (!std::filesystem::is_regular_file(path)) return;
  const Json config = read_json_file(path);
  const auto shown = [&](const char* key) {
    return config.is_object() && config.contains(key) ? config.at(key).dump() : "absent";
  };
  out.notes.push_back(fmt::format("adapter {}: rank {}, alpha {}, dropout {}, modules {}, whole {}",
                                  shown("peft_type"), shown("r"), shown("lora_alpha"),
                                  shown("lora_dropout"), shown("target_modules"),
                                  shown("modules_to_save")));
}

}  // namespace

Inspection inspect(const Target& target) {
  Inspection out{target, {}, {}, {}, {}, nullptr};
  if (target.kind == TargetKind::kFile) {
    const auto file = SafetensorsFile::open(target.path);
    add_file(file, out);
    add_file_notes(file, out);
  } else if (target.kind == TargetKind::kHuggingFace) {
    const auto weights = HfWeights::open(target.path);
    for (const auto& file : weights.files()) add_file(*file, out);
    out.notes = weights.notes();
    note_adapter(target.path, out);
  } else if (target.kind == TargetKind::kCheckpoint) {
    add_checkpoint(target.path, read_committed_manifest(target.path), out);
  } else {
    add_newest(target.path, out);
  }
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const InspectedTensor& a, const InspectedTensor& b) { return a.name < b.name; });
  for (const InspectedTensor& tensor : out.tensors) out.tree.add(tensor.name, tensor.size_bytes);
  return out;
}

}  // namespace mm::ckpt
