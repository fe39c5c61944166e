#include "lib/data/pack_options.h"

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/data/source_json.h"
#include "lib/text/chat_template.h"
#include "lib/text/render.h"

namespace mm::data {
namespace {

void check_pictures(const PictureOptions& pictures) {
  if (pictures.side < 1 || pictures.side > 16384) {
    throw UsageError("image side is {} pixels; it must be 1 to 16384", pictures.side);
  }
  if (pictures.patch < 1 || pictures.patch > pictures.side) {
    throw UsageError("patch is {} pixels; it must be 1 to the image side, {}", pictures.patch,
                     pictures.side);
  }
  if (!image::geometry_from_name(pictures.geometry)) {
    throw UsageError("geometry \"{}\" is unknown; known: crop, pad, squash", pictures.geometry);
  }
  if (!image::filter_from_name(pictures.filter)) {
    throw UsageError("filter \"{}\" is unknown; known: nearest, box, bilinear, bicubic, lanczos",
                     pictures.filter);
  }
  if (pictures.storage != "raw" && pictures.storage != "jpeg") {
    throw UsageError("storage \"{}\" is unknown; known: raw, jpeg", pictures.storage);
  }
  if (pictures.jpeg_quality < 1 || pictures.jpeg_quality > 100) {
    throw UsageError("JPEG quality is {}; it must be 1 to 100", pictures.jpeg_quality);
  }
}

/// Size and hash of a file, or null without one.
Json file_json(const std::filesystem::path& path) {
  if (path.empty()) return nullptr;
  const MappedFile file(path);
  return {{"bytes", file.bytes().size()}, {"xxh3_128", xxh3_128_hex(file.bytes())}};
}

Json pictures_json(const PictureOptions& pictures) {
  Json json = {{"side", pictures.side},         {"patch", pictures.patch},
               {"geometry", pictures.geometry}, {"filter", pictures.filter},
               {"storage", pictures.storage},   {"max_pixels", pictures.limits.max_pixels}};
  if (pictures.storage == "jpeg") json["jpeg_quality"] = pictures.jpeg_quality;
  return json;
}

}  // namespace

void check(const PackOptions& options) {
  if (!options.text_only) check_pictures(options.pictures);
  if (!text::find_template(options.chat_template)) {
    throw UsageError("template \"{}\" is unknown; known: {}", options.chat_template,
                     fmt::join(text::template_names(), ", "));
  }
  if (options.max_length < 2)
    throw UsageError("max length is {} tokens; it must be at least 2", options.max_length);
  if (options.shard_bytes < 1) throw UsageError("shard size is 0 bytes");
}

int32_t picture_tokens(const PackOptions& options) {
  if (options.text_only) return 0;
  return text::image_token_count(options.pictures.side, options.pictures.patch, false, false);
}

Json canonical_options(const PackOptions& options) {
  Json json;
  json["source"] = source_json(options.source);
  json["tokenizer"] = file_json(options.tokenizer);
  json["template"] = options.chat_template;
  json["text_only"] = options.text_only;
  json["pictures"] = options.text_only ? Json(nullptr) : pictures_json(options.pictures);
  json["max_length"] = options.max_length;
  json["shard_bytes"] = options.shard_bytes;
  json["ids"] = file_json(options.ids);
  json["exclude"] = file_json(options.exclude);
  return json;
}

std::optional<std::string> first_difference(const Json& there, const Json& now) {
  if (there == now) return std::nullopt;
  if (!there.is_object() || !now.is_object())
    return fmt::format(": {} there, {} now", there.dump(), now.dump());
  const auto value_of = [](const Json& object, const std::string& key) {
    return object.contains(key) ? object.at(key) : Json(nullptr);
  };
  for (const auto* object : {&now, &there}) {
    for (const auto& [key, unused] : object->items()) {
      const auto inner = first_difference(value_of(there, key), value_of(now, key));
      if (inner) return key + (inner->starts_with(':') ? "" : ".") + *inner;
    }
  }
  return std::nullopt;
}

}  // namespace mm::data
