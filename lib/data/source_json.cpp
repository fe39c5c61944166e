#include "lib/data/source_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "lib/base/file.h"
#include "lib/data/source_openers.h"

namespace mm::data {
namespace {

std::string_view shape_word(RowShape shape) {
  switch (shape) {
    case RowShape::kAny:
      return "any";
    case RowShape::kConversations:
      return "conversations";
    case RowShape::kMessages:
      return "messages";
    case RowShape::kCaption:
      return "caption";
    case RowShape::kMmc4:
      return "mmc4";
    case RowShape::kObelics:
      return "obelics";
  }
  return "";
}

/// Keys of later options are there only where they differ from the default, so that sets packed
/// before the options were made are still found equal.
void add_later_options(const SourceOptions& source, Json& json) {
  if (source.shape != RowShape::kAny) json["rows"] = shape_word(source.shape);
  if (source.missing_marks == MissingMarks::kPrepend) json["missing_marks"] = "prepend";
  if (source.kohya) json["kohya"] = true;
  if (!source.labels.empty()) json["labels"] = source.labels;
  if (source.links == Links::kAnywhere) json["links"] = "anywhere";
}

Json parts_json(const std::vector<SourcePart>& parts) {
  Json json = Json::array();
  for (const SourcePart& part : parts) {
    Json entry = source_json(part.options);
    if (part.weight != 0) entry["weight"] = part.weight;
    if (part.repeat != 1) entry["repeat"] = part.repeat;
    json.push_back(std::move(entry));
  }
  return json;
}

uint64_t size_of_files(const SourceOptions& source) {
  uint64_t bytes = 0;
  for (const auto& file : source_files(source)) bytes += File::open_read(file).size_bytes();
  return bytes;
}

}  // namespace

Json source_json(const SourceOptions& source) {
  Json json = {{"kind", source_kind_name(source.kind)},
               {"path", source.path.string()},
               {"image_root", source.root().string()},
               {"question", source.question}};
  if (source.kind == SourceKind::kMixture) {
    json["parts"] = parts_json(source.parts.empty() ? mixture_parts(source) : source.parts);
  } else if (source.kind == SourceKind::kInternvlMeta) {
    json["parts"] = parts_json(internvl_parts(source));
  } else if (source.kind == SourceKind::kFolder) {
    json["caption_lines"] = source.caption_lines == CaptionLines::kFirst ? "first" : "all";
  } else {
    json["bytes"] = size_of_files(source);
  }
  add_later_options(source, json);
  return json;
}

std::vector<std::string> source_names(const Json& recorded) {
  std::vector<std::string> names;
  const auto add = [&](const Json& source) {
    const std::filesystem::path path = source.is_object() ? source.value("path", "") : "";
    std::string name = (path.has_filename() ? path : path.parent_path()).stem().string();
    if (name.empty()) name = "source";
    const auto used = std::count(names.begin(), names.end(), name);
    names.push_back(used == 0 ? name : fmt::format("{}-{}", name, names.size()));
  };
  const auto parts = recorded.is_object() ? recorded.find("parts") : recorded.end();
  if (parts == recorded.end() || !parts->is_array() || parts->empty()) {
    add(recorded);
  } else {
    for (const Json& part : *parts) add(part);
  }
  return names;
}

}  // namespace mm::data
