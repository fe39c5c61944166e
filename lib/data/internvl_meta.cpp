#include <utility>

#include "lib/base/error.h"
#include "lib/data/json_fields.h"
#include "lib/data/source_openers.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

/// Relative paths count from the meta file.
fs::path beside(const fs::path& meta, const std::string& path) {
  return fs::path(path).is_absolute() ? fs::path(path) : meta.parent_path() / path;
}

SourcePart part_of(const JsonFields& in, const SourceOptions& options) {
  SourcePart part{options};
  part.options.path = beside(options.path, in.text("annotation"));
  part.options.image_root = options.image_root;
  const Json& json = in.json();
  if (json.contains("root") && json["root"].is_string())
    part.options.image_root = beside(options.path, json["root"].get<std::string>());
  if (part.options.image_root.empty()) part.options.image_root = part.options.path.parent_path();
  if (!fs::exists(part.options.path)) {
    throw DataError("{}: no annotation file {}", in.origin(), part.options.path.string());
  }
  part.options.kind = sniff_source(part.options.path);
  if (part.options.kind == SourceKind::kInternvlMeta || part.options.kind == SourceKind::kMixture)
    throw DataError("{}: {} names sources in its turn", in.origin(), part.options.path.string());
  if (json.contains("repeat_time")) {
    if (!json["repeat_time"].is_number())
      throw DataError("{}: repeat_time is not a number", in.origin());
    part.repeat = json["repeat_time"].get<double>();
  }
  return part;
}

}  // namespace

std::vector<SourcePart> internvl_parts(const SourceOptions& options) {
  const Json meta = read_json_file(options.path);
  if (!meta.is_object())
    throw DataError("{}: expected an object of data sets", options.path.string());
  std::vector<SourcePart> parts;
  for (const auto& [name, value] : meta.items()) {
    const std::string origin = fmt::format("{}: \"{}\"", options.path.string(), name);
    parts.push_back(part_of({value, origin}, options));
  }
  if (parts.empty()) throw DataError("{}: names no data set", options.path.string());
  return parts;
}

}  // namespace mm::data
