#include <algorithm>
#include <string>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/data/csv_reader.h"
#include "lib/data/folder_listing.h"
#include "lib/data/source.h"
#include "lib/data/unpacked_file.h"

namespace mm::data {
namespace {

constexpr uint64_t kHeadBytes = 64 << 10;
constexpr uint64_t kMaxMetaBytes = uint64_t{16} << 20;
constexpr size_t kTarMagicAt = 257;

/// The first bytes of a file, unpacked if it is compressed.
std::string head_of(const std::filesystem::path& path, uint64_t most) {
  std::string head;
  if (!is_compressed(path)) {
    const File file = File::open_read(path);
    head.resize(std::min(file.size_bytes(), most));
    file.read_at(0, std::as_writable_bytes(std::span(head)));
    return head;
  }
  UnpackedFile file(path);
  head.resize(most);
  const auto bytes = std::as_writable_bytes(std::span(head));
  size_t size = 0;
  for (size_t got = 1; got > 0 && size < most; size += got) got = file.read(bytes.subspan(size));
  head.resize(size);
  return head;
}

/// An object of objects that each name an annotation file.
bool is_internvl_meta(const Json& json) {
  return json.is_object() && !json.empty() &&
         std::all_of(json.begin(), json.end(), [](const Json& value) {
           return value.is_object() && value.contains("annotation");
         });
}

bool parses_as_meta(std::string_view text) {
  try {
    return is_internvl_meta(parse_json(text, "meta"));
  } catch (const DataError&) {
    return false;
  }
}

/// `text` begins with '{'.
SourceKind kind_of_object(std::string_view text, const std::filesystem::path& path) {
  // JSONL's first line is a whole object; a meta file is one object, mostly over many lines.
  const size_t end = text.find('\n');
  const bool has_more = end != std::string_view::npos &&
                        text.find_first_not_of(" \t\r\n", end) != std::string_view::npos;
  if (has_more) {
    try {
      parse_json(text.substr(0, end), "line");
      return SourceKind::kJsonl;
    } catch (const DataError&) {
    }
  }
  const std::string whole = head_of(path, kMaxMetaBytes + 1);
  if (whole.size() > kMaxMetaBytes) return SourceKind::kJsonl;
  const size_t begin = whole.find('{');
  return parses_as_meta(std::string_view(whole).substr(begin)) ? SourceKind::kInternvlMeta
                                                               : SourceKind::kJsonl;
}

SourceKind kind_of_text(std::string_view text, const std::filesystem::path& path) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (path.extension() == ".toml" || text.starts_with("[[source]]")) return SourceKind::kMixture;
  if (text.starts_with('[')) return SourceKind::kLlavaJson;
  if (text.starts_with('{')) return kind_of_object(text, path);
  const auto header = text.substr(0, text.find_first_of("\r\n"));
  if (is_table_header(header, '\t')) return SourceKind::kTsv;
  if (is_table_header(header, ',')) return SourceKind::kCsv;
  const auto named = source_kind_of_name(path.filename().string());
  const bool table = named == SourceKind::kCsv || named == SourceKind::kTsv;
  return table ? *named : SourceKind::kJsonl;
}

/// Pictures with captions, unless there are none and the folder holds shards of another kind.
SourceKind kind_of_folder(const std::filesystem::path& folder) {
  for (const SourceKind kind : {SourceKind::kWebdataset, SourceKind::kParquet}) {
    if (shard_files(folder, kind).empty()) continue;
    return list_files(folder, is_picture_name).empty() ? kind : SourceKind::kFolder;
  }
  return SourceKind::kFolder;
}

}  // namespace

SourceKind sniff_source(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return kind_of_folder(path);
  const auto file = source_files({.path = path}).front();
  if (source_kind_of_name(file.filename().string()) == SourceKind::kWebdataset)
    return SourceKind::kWebdataset;
  const std::string head = head_of(file, kHeadBytes);
  if (head.starts_with("PAR1")) return SourceKind::kParquet;
  if (head.size() > kTarMagicAt && std::string_view(head).substr(kTarMagicAt).starts_with("ustar"))
    return SourceKind::kWebdataset;
  // Four bytes that no text begins with: no name, bytes, three dimensions.
  if (head.starts_with(std::string_view("\0\0\x08\x03", 4))) return SourceKind::kIdx;
  if (!source_kind_of_name(file.filename().string()) && head.find('\0') != std::string::npos) {
    throw DataError(
        "{}: bytes that are no text, and no tar, Parquet or idx file; `mmshard pack --help` lists "
        "what is read",
        file.string());
  }
  return kind_of_text(head, file);
}

}  // namespace mm::data
