#include <fmt/format.h>

#include "lib/base/text_escape.h"
#include "lib/ckpt/inspect.h"

namespace mm::ckpt {
namespace {

constexpr int kJsonSchema = 1;

std::string layout_text(const Inspection& inspection, const InspectedTensor& tensor) {
  if (tensor.pieces.size() == 1) return escape_text(inspection.files[tensor.pieces[0].file].name);
  std::string text = fmt::format("{} pieces:", tensor.pieces.size());
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < std::min(tensor.pieces.size(), kShown); ++i) {
    text += fmt::format(" {} {}", inspection.files[tensor.pieces[i].file].name,
                        box_text(tensor.pieces[i].box));
  }
  return text + (tensor.pieces.size() > kShown ? " ..." : "");
}

std::string tensor_lines(const Inspection& inspection) {
  std::string out = "tensors\n";
  for (const InspectedTensor& tensor : inspection.tensors) {
    out += fmt::format("  {}  {} {}  {}  {}\n", escape_text(tensor.name), dtype_name(tensor.dtype),
                       shape_text(tensor.shape), size_text(tensor.size_bytes),
                       layout_text(inspection, tensor));
  }
  return out;
}

std::string checkpoint_lines(const Json& checkpoint) {
  const auto word = [&](const char* key) { return checkpoint[key].get<std::string>(); };
  const std::string previous = word("previous_save_id");
  std::string out = fmt::format(
      "step {}, save {}, {}, {} ranks\n", checkpoint["step"].get<uint64_t>(), word("save_id"),
      previous.empty() ? "the first of its line" : "after save " + previous,
      checkpoint["world_size"].get<uint64_t>());
  out += "state";
  for (const auto& [key, value] : checkpoint["state"].items()) {
    const std::string shown = value.is_structured() ? "{...}" : escape_text(value.dump());
    out += fmt::format(" {}={}", escape_text(key), shown);
  }
  return out + "\n";
}

Json tensor_json(const Inspection& inspection, const InspectedTensor& tensor) {
  Json pieces = Json::array();
  for (const InspectedPiece& piece : tensor.pieces) {
    pieces.push_back({{"file", inspection.files[piece.file].name},
                      {"offset", piece.box.offset},
                      {"shape", piece.box.shape}});
  }
  return {{"name", tensor.name},
          {"dtype", dtype_name(tensor.dtype)},
          {"shape", tensor.shape},
          {"bytes", tensor.size_bytes},
          {"pieces", pieces}};
}

}  // namespace

std::string inspection_text(const Inspection& inspection, const InspectTextOptions& options) {
  std::string out =
      fmt::format("{} {}\n", target_name(inspection.target.kind), inspection.target.path.string());
  if (!inspection.checkpoint.is_null()) out += checkpoint_lines(inspection.checkpoint);
  out += "files\n";
  for (const InspectedFile& file : inspection.files) {
    out += fmt::format("  {}  {}  {} {}\n", escape_text(file.name), size_text(file.size_bytes),
                       file.tensors, file.tensors == 1 ? "tensor" : "tensors");
  }
  out += "parts\n";
  for (const auto& [name, part] : inspection.tree.parts()) {
    out += fmt::format("  {}  {} {}  {}\n", escape_text(name), part->tensors,
                       part->tensors == 1 ? "tensor" : "tensors", size_text(part->bytes));
  }
  out += "tree\n" + inspection.tree.text(options.depth);
  if (options.tensors) out += tensor_lines(inspection);
  out += fmt::format("total  {} tensors  {}\n", inspection.tree.tensors,
                     size_text(inspection.tree.bytes));
  for (const std::string& note : inspection.notes)
    out += fmt::format("note: {}\n", escape_text(note, 2000));
  return out;
}

Json inspection_json(const Inspection& inspection) {
  Json json;
  json["schema"] = kJsonSchema;
  json["kind"] = target_name(inspection.target.kind);
  json["path"] = inspection.target.path.string();
  json["bytes"] = inspection.tree.bytes;
  json["files"] = Json::array();
  for (const InspectedFile& file : inspection.files) {
    json["files"].push_back(
        {{"file", file.name}, {"bytes", file.size_bytes}, {"tensors", file.tensors}});
  }
  json["parts"] = Json::array();
  for (const auto& [name, part] : inspection.tree.parts()) {
    json["parts"].push_back({{"name", name}, {"tensors", part->tensors}, {"bytes", part->bytes}});
  }
  json["tensors"] = Json::array();
  for (const InspectedTensor& tensor : inspection.tensors)
    json["tensors"].push_back(tensor_json(inspection, tensor));
  json["notes"] = inspection.notes;
  json["checkpoint"] = inspection.checkpoint;
  return json;
}

}  // namespace mm::ckpt
