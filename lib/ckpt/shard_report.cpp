#include <fmt/format.h>

#include <map>

#include "lib/base/error.h"
#include "lib/ckpt/commit.h"
#include "lib/ckpt/json_scanner.h"
#include "lib/ckpt/manifest_json.h"

namespace mm::ckpt {
namespace {

void add_pieces(const TensorRecord& from, size_t file, TensorRecord& to) {
  if (to.dtype != from.dtype || to.shape != from.shape) {
    throw DataError("tensor {}: one rank saves {} {}, another {} {}", printable_name(from.name),
                    dtype_name(to.dtype), shape_text(to.shape), dtype_name(from.dtype),
                    shape_text(from.shape));
  }
  for (const Piece& piece : from.pieces) to.pieces.push_back({file, piece.tensor, piece.box});
}

void check_tiled(const TensorRecord& tensor) {
  std::vector<ElementBox> boxes;
  for (const Piece& piece : tensor.pieces) boxes.push_back(piece.box);
  if (const auto problem = tiling_problem(tensor.shape, boxes)) {
    throw DataError("tensor {}: {}", printable_name(tensor.name), *problem);
  }
}

Json encode_record(const TensorRecord& tensor) {
  Json pieces = Json::array();
  for (const Piece& piece : tensor.pieces) {
    pieces.push_back(
        {{"tensor", piece.tensor}, {"offset", piece.box.offset}, {"shape", piece.box.shape}});
  }
  return {{"name", tensor.name},
          {"dtype", dtype_name(tensor.dtype)},
          {"shape", tensor.shape},
          {"pieces", pieces}};
}

TensorRecord decode_record(const JsonFields& fields) {
  TensorRecord tensor;
  tensor.name = fields.text("name");
  const auto dtype = parse_dtype(fields.text("dtype"));
  if (!dtype) fields.fail("dtype", "unknown");
  tensor.dtype = *dtype;
  tensor.shape = fields.u64s("shape");
  for (const Json& item : fields.array("pieces")) {
    const JsonFields piece(item, fields.where());
    tensor.pieces.push_back({0, piece.text("tensor"), {piece.u64s("offset"), piece.u64s("shape")}});
  }
  return tensor;
}

}  // namespace

std::string encode_report(const ShardReport& report) {
  Json json;
  json["file"] = encode_file_record(report.file);
  json["tensors"] = Json::array();
  for (const TensorRecord& tensor : report.tensors)
    json["tensors"].push_back(encode_record(tensor));
  return json.dump();
}

ShardReport decode_report(std::string_view text, std::string_view origin) {
  const Json json = parse_json(text, origin);
  const JsonFields fields(json, std::string(origin));
  ShardReport report;
  report.file = decode_file_record(JsonFields(fields.any("file"), std::string(origin)));
  for (const Json& item : fields.array("tensors")) {
    report.tensors.push_back(decode_record(JsonFields(item, std::string(origin))));
  }
  return report;
}

Manifest merge_reports(const SaveInfo& info, std::span<const ShardReport> reports, Json state) {
  Manifest manifest;
  manifest.save_id = info.save_id;
  manifest.previous_save_id = info.previous_save_id;
  manifest.step = info.step;
  manifest.world_size = static_cast<uint64_t>(info.world_size);
  manifest.state = std::move(state);
  std::map<std::string, TensorRecord> tensors;
  for (const ShardReport& report : reports) {
    const size_t file = manifest.files.size();
    manifest.files.push_back(report.file);
    for (const TensorRecord& tensor : report.tensors) {
      const auto [at, added] = tensors.try_emplace(
          tensor.name, TensorRecord{tensor.name, tensor.dtype, tensor.shape, {}});
      add_pieces(tensor, file, at->second);
    }
  }
  for (auto& [name, tensor] : tensors) {
    check_tiled(tensor);
    manifest.tensors.push_back(std::move(tensor));
  }
  return manifest;
}

}  // namespace mm::ckpt
