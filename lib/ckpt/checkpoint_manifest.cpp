#include "lib/ckpt/checkpoint_manifest.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "lib/base/error.h"
#include "lib/ckpt/json_scanner.h"
#include "lib/ckpt/manifest_json.h"

namespace mm::ckpt {
namespace {

// Written into every manifest: the oldest mmkit that reads this format version.
constexpr std::string_view kNeedsTool = "0.1.0";

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string encode_crcs(const std::vector<uint32_t>& crcs) {
  std::string text;
  text.reserve(crcs.size() * 8);
  for (const uint32_t crc : crcs) text += fmt::format("{:08x}", crc);
  return text;
}

// What follows from the tensor is left out: its own name, and the whole box.
Json encode_piece(const Piece& piece, const TensorRecord& tensor) {
  Json json;
  json["file"] = piece.file;
  if (piece.tensor != tensor.name) json["tensor"] = piece.tensor;
  if (piece.box != whole_box(tensor.shape)) {
    json["offset"] = piece.box.offset;
    json["shape"] = piece.box.shape;
  }
  return json;
}

Json encode_tensor(const TensorRecord& tensor) {
  Json json;
  json["name"] = tensor.name;
  json["dtype"] = dtype_name(tensor.dtype);
  json["shape"] = tensor.shape;
  json["pieces"] = Json::array();
  for (const Piece& piece : tensor.pieces) json["pieces"].push_back(encode_piece(piece, tensor));
  return json;
}

std::vector<uint32_t> decode_crcs(const JsonFields& fields, uint64_t size_bytes) {
  const std::string text = fields.text("crc32c");
  const uint64_t blocks = size_bytes / kBlockBytes + (size_bytes % kBlockBytes != 0 ? 1 : 0);
  if (text.size() % 8 != 0 || text.size() / 8 != blocks || !is_hex(text, text.size())) {
    fields.fail("crc32c",
                fmt::format("8 hexadecimal digits for each of {} blocks expected", blocks));
  }
  std::vector<uint32_t> crcs(blocks);
  for (uint64_t i = 0; i < blocks; ++i) {
    std::from_chars(text.data() + 8 * i, text.data() + 8 * i + 8, crcs[i], 16);
  }
  return crcs;
}

Piece decode_piece(const JsonFields& fields, const TensorRecord& tensor, size_t file_count) {
  Piece piece;
  piece.file = fields.u64("file");
  if (piece.file >= file_count)
    fields.fail("file", fmt::format("index below {} expected", file_count));
  piece.tensor = fields.has("tensor") ? fields.text("tensor") : tensor.name;
  piece.box = whole_box(tensor.shape);
  if (fields.has("offset") || fields.has("shape")) {
    piece.box = {fields.u64s("offset"), fields.u64s("shape")};
  }
  return piece;
}

TensorRecord decode_tensor(const JsonFields& fields, size_t file_count) {
  TensorRecord tensor;
  tensor.name = fields.text("name");
  const std::string dtype = fields.text("dtype");
  if (!parse_dtype(dtype))
    fields.fail("dtype", fmt::format("unknown; known are {}", dtype_names()));
  tensor.dtype = *parse_dtype(dtype);
  tensor.shape = fields.u64s("shape");
  const Result<uint64_t> bytes = packed_bytes(tensor.dtype, tensor.shape);
  if (!bytes) fields.fail("shape", bytes.failure().message);
  std::vector<ElementBox> boxes;
  for (const Json& item : fields.array("pieces")) {
    tensor.pieces.push_back(
        decode_piece(JsonFields(item, fields.where() + ": piece"), tensor, file_count));
    boxes.push_back(tensor.pieces.back().box);
  }
  if (const auto problem = tiling_problem(tensor.shape, boxes)) {
    throw DataError("{}: tensor {}: {}", fields.where(), printable_name(tensor.name), *problem);
  }
  return tensor;
}

void check_format(const JsonFields& fields) {
  if (fields.text("format") != kManifestFormat) {
    fields.fail("format", fmt::format("\"{}\" expected", kManifestFormat));
  }
  const uint64_t version = fields.u64("version");
  if (version > kManifestVersion) {
    throw DataError(
        "{}: format version {} is newer than {}, the newest that this mmkit reads; use mmkit {} or "
        "newer",
        fields.where(), version, kManifestVersion,
        fields.has("needs_mmkit") ? printable_name(fields.text("needs_mmkit")) : "of that version");
  }
  if (version == 0) fields.fail("version", "1 or more expected");
}

std::string decode_save_id(const JsonFields& fields, std::string_view key, bool may_be_empty) {
  std::string id = fields.text(key);
  if (!(may_be_empty && id.empty()) && !is_hex(id, 32))
    fields.fail(key, "32 hexadecimal digits expected");
  return id;
}

void check_unique(const Manifest& manifest, std::string_view origin) {
  const auto& tensors = manifest.tensors;
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i - 1].name >= tensors[i].name) {
      throw DataError("{}: tensor {} stands twice or out of order", origin,
                      printable_name(tensors[i].name));
    }
  }
  std::set<std::string_view> files;
  for (const FileRecord& file : manifest.files) {
    if (!files.insert(file.name).second) {
      throw DataError("{}: file {} stands twice", origin, printable_name(file.name));
    }
  }
}

}  // namespace

Json encode_file_record(const FileRecord& file) {
  Json json;
  json["file"] = file.name;
  json["bytes"] = file.checksums.size_bytes;
  json["xxh3_128"] = file.checksums.xxh3_128;
  json["crc32c"] = encode_crcs(file.checksums.block_crc32c);
  return json;
}

FileRecord decode_file_record(const JsonFields& fields) {
  FileRecord file;
  file.name = fields.text("file");
  const bool plain = !file.name.empty() && file.name != "." && file.name != ".." &&
                     file.name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (!plain) fields.fail("file", "a file name without path expected");
  file.checksums.size_bytes = fields.u64("bytes");
  file.checksums.xxh3_128 = fields.text("xxh3_128");
  if (!is_hex(file.checksums.xxh3_128, 32))
    fields.fail("xxh3_128", "32 hexadecimal digits expected");
  file.checksums.block_crc32c = decode_crcs(fields, file.checksums.size_bytes);
  return file;
}

std::string encode_manifest(const Manifest& manifest) {
  Json json;
  json["format"] = kManifestFormat;
  json["version"] = kManifestVersion;
  json["needs_mmkit"] = kNeedsTool;
  json["save_id"] = manifest.save_id;
  json["previous_save_id"] = manifest.previous_save_id;
  json["step"] = manifest.step;
  json["world_size"] = manifest.world_size;
  json["block_bytes"] = kBlockBytes;
  json["state"] = manifest.state;
  json["files"] = Json::array();
  for (const FileRecord& file : manifest.files) json["files"].push_back(encode_file_record(file));
  json["tensors"] = Json::array();
  for (const TensorRecord& tensor : manifest.tensors)
    json["tensors"].push_back(encode_tensor(tensor));
  return json.dump() + "\n";
}

Manifest decode_manifest(std::string_view text, std::string_view origin) {
  if (text.empty()) throw DataError("{}: the file is empty", origin);
  const Json json = parse_json(text, origin);
  const JsonFields fields(json, std::string(origin));
  check_format(fields);
  Manifest manifest;
  manifest.save_id = decode_save_id(fields, "save_id", false);
  manifest.previous_save_id = decode_save_id(fields, "previous_save_id", true);
  manifest.step = fields.u64("step");
  manifest.world_size = fields.u64("world_size");
  if (fields.u64("block_bytes") != kBlockBytes)
    fields.fail("block_bytes", fmt::format("{} expected", kBlockBytes));
  manifest.state = fields.any("state");
  for (const Json& item : fields.array("files")) {
    manifest.files.push_back(decode_file_record(
        JsonFields(item, fmt::format("{}: files[{}]", origin, manifest.files.size()))));
  }
  for (const Json& item : fields.array("tensors")) {
    const std::string where = fmt::format("{}: tensors[{}]", origin, manifest.tensors.size());
    manifest.tensors.push_back(decode_tensor(JsonFields(item, where), manifest.files.size()));
  }
  check_unique(manifest, origin);
  return manifest;
}

std::string new_save_id() {
  std::array<unsigned char, 16> raw{};
  if (::getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size())) {
    throw IoError("the kernel gave no random bytes for a save id");
  }
  std::string id;
  for (const unsigned char byte : raw) id += fmt::format("{:02x}", byte);
  return id;
}

}  // namespace mm::ckpt
