#include "lib/data/source.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/folder_listing.h"
#include "lib/data/path_pattern.h"
#include "lib/data/source_openers.h"

namespace mm::data {
namespace {

struct NamedFormat {
  std::string_view name;
  SourceFormat format;
};

constexpr std::array<NamedFormat, 16> kFormats = {{
    {"folder", {SourceKind::kFolder}},
    {"jsonl", {SourceKind::kJsonl}},
    {"llava-json", {SourceKind::kLlavaJson}},
    {"internvl-meta", {SourceKind::kInternvlMeta}},
    {"webdataset", {SourceKind::kWebdataset}},
    {"csv", {SourceKind::kCsv}},
    {"tsv", {SourceKind::kTsv}},
    {"parquet", {SourceKind::kParquet}},
    {"idx", {SourceKind::kIdx}},
    {"mixture", {SourceKind::kMixture}},
    {"llava-jsonl", {SourceKind::kJsonl, RowShape::kConversations}},
    {"messages", {SourceKind::kJsonl, RowShape::kMessages}},
    {"captions", {SourceKind::kJsonl, RowShape::kCaption}},
    {"pixart", {SourceKind::kLlavaJson, RowShape::kCaption}},
    {"mmc4", {SourceKind::kJsonl, RowShape::kMmc4}},
    {"obelics", {SourceKind::kJsonl, RowShape::kObelics}},
}};

std::unique_ptr<RecordSource> open_one(const SourceOptions& options) {
  switch (options.kind) {
    case SourceKind::kFolder:
      return open_folder(options);
    case SourceKind::kJsonl:
      return open_jsonl(options);
    case SourceKind::kLlavaJson:
      return open_json_array(options);
    case SourceKind::kInternvlMeta:
      return open_parts(internvl_parts(options));
    case SourceKind::kWebdataset:
      return open_webdataset(options);
    case SourceKind::kCsv:
    case SourceKind::kTsv:
      return open_csv(options);
    case SourceKind::kParquet:
      return open_parquet(options);
    case SourceKind::kIdx:
      return open_idx(options);
    case SourceKind::kMixture:
      return open_parts(options.parts.empty() ? mixture_parts(options) : options.parts);
  }
  throw InternalError("source kind {}", static_cast<int>(options.kind));
}

}  // namespace

std::optional<SourceFormat> source_format_from_name(std::string_view name) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(),
                                  [&](const NamedFormat& f) { return f.name == name; });
  if (found == kFormats.end()) return std::nullopt;
  return found->format;
}

std::vector<std::string> source_format_names() {
  std::vector<std::string> names;
  for (const NamedFormat& format : kFormats) names.emplace_back(format.name);
  return names;
}

std::optional<SourceKind> source_kind_from_name(std::string_view name) {
  const auto format = source_format_from_name(name);
  if (!format || format->shape != RowShape::kAny) return std::nullopt;
  return format->kind;
}

std::string_view source_kind_name(SourceKind kind) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(), [&](const NamedFormat& f) {
    return f.format.kind == kind && f.format.shape == RowShape::kAny;
  });
  return found == kFormats.end() ? "" : found->name;
}

std::filesystem::path SourceOptions::root() const {
  if (!image_root.empty()) return image_root;
  if (kind == SourceKind::kFolder || std::filesystem::is_directory(path)) return path;
  const auto parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

std::optional<SourceKind> source_kind_of_name(std::string name) {
  constexpr std::array<std::string_view, 4> kPacked = {".gz", ".zst", ".xz", ".bz2"};
  for (const std::string_view ending : kPacked) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  constexpr std::array<std::pair<std::string_view, SourceKind>, 7> kEndings = {
      {{".tar", SourceKind::kWebdataset},
       {".tgz", SourceKind::kWebdataset},
       {".parquet", SourceKind::kParquet},
       {".jsonl", SourceKind::kJsonl},
       {".json", SourceKind::kLlavaJson},
       {".csv", SourceKind::kCsv},
       {".tsv", SourceKind::kTsv}}};
  for (const auto& [ending, kind] : kEndings) {
    if (name.ends_with(ending)) return kind;
  }
  return std::nullopt;
}

std::vector<std::filesystem::path> shard_files(const std::filesystem::path& folder,
                                               SourceKind kind) {
  return list_files(folder,
                    [&](const std::string& name) { return source_kind_of_name(name) == kind; });
}

std::vector<std::filesystem::path> source_files(const SourceOptions& options) {
  if (options.kind == SourceKind::kFolder) return {options.path};
  const bool folder = std::filesystem::is_directory(options.path);
  if (!folder && !is_pattern(options.path)) return {options.path};
  auto files = folder ? shard_files(options.path, options.kind) : expand_pattern(options.path);
  if (files.empty())
    throw IoError(
        "{}: no file {}", options.path.string(),
        folder ? fmt::format("of the format {} in it", source_kind_name(options.kind)) : "matches");
  return files;
}

std::unique_ptr<RecordSource> open_source(const SourceOptions& options) {
  if (!options.parts.empty()) return open_one(options);
  const auto files = source_files(options);
  if (files.size() == 1 && files.front() == options.path) return open_one(options);
  std::vector<SourcePart> parts;
  for (const auto& file : files) {
    parts.push_back({options});
    parts.back().options.path = file;
  }
  return open_parts(std::move(parts), PartNames::kFiles);
}

}  // namespace mm::data
