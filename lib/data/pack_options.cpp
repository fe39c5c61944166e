#include "lib/data/pack_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/data/bucket_options.h"
#include "lib/data/source_json.h"
#include "lib/image/tiling.h"
#include "lib/text/chat_template.h"
#include "lib/text/tokenizer.h"

namespace mm::data {
namespace {

[[noreturn]] void refuse(std::string_view what, std::string_view value, std::string_view known) {
  throw UsageError("{} \"{}\" is unknown; known: {}", what, value, known);
}

void check_range(std::string_view what, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most)
    throw UsageError("{} is {}; it must be {} to {}", what, value, least, most);
}

constexpr std::string_view kBuckets = "buckets";
constexpr std::array kStorages = {"raw", "jpeg", "webp", "webp-lossless", "source"};

void check_storage(const PictureOptions& pictures) {
  if (pictures.storage == "latent") {
    throw UsageError(
        "storage \"latent\" needs an image encoder, which this version does not have; "
        "pack pixels with raw, jpeg, webp, webp-lossless or source");
  }
  if (std::ranges::find(kStorages, pictures.storage) == kStorages.end())
    refuse("storage", pictures.storage, fmt::format("{}", fmt::join(kStorages, ", ")));
  check_range("JPEG quality", pictures.jpeg_quality, 1, 100);
  check_range("WebP quality", pictures.webp_quality, 0, 100);
}

void check_limits(const image::Limits& limits) {
  check_range("max side", limits.max_side, 1, 65535);
  check_range("min side", limits.min_side, 1, limits.max_side);
  if (limits.max_aspect != 0 && !(limits.max_aspect >= 1 && limits.max_aspect <= 65535))
    throw UsageError("max aspect is {}; it must be 1 to 65535, or 0 for no limit",
                     limits.max_aspect);
}

/// Pairs "AxB" separated by commas.
std::vector<std::pair<int32_t, int32_t>> pairs_of(std::string_view list, std::string_view what,
                                                  int32_t most) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view word = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    const char* const last = word.data() + word.size();
    std::pair<int32_t, int32_t> pair;
    const auto first = std::from_chars(word.data(), last, pair.first);
    const bool cross = first.ec == std::errc() && first.ptr != last && *first.ptr == 'x';
    const auto second = std::from_chars(cross ? first.ptr + 1 : last, last, pair.second);
    const bool good = cross && second.ec == std::errc() && second.ptr == last && pair.first >= 1 &&
                      pair.second >= 1 && pair.first <= most && pair.second <= most;
    if (!good) {
      throw UsageError("{}: \"{}\" is no pair such as 2x1 with numbers from 1 to {}", what, word,
                       most);
    }
    pairs.push_back(pair);
  }
  if (pairs.empty() || pairs.size() > 4096)
    throw UsageError("{}: {} pairs; there must be 1 to 4096", what, pairs.size());
  return pairs;
}

void check_pictures(const PictureOptions& pictures) {
  if (pictures.geometry != kBuckets) {
    check_range("image side", pictures.side, 1, 16384);
    check_range("patch", pictures.patch, 1, pictures.side);
    check_range("merge", pictures.merge, 1, std::max(1, pictures.side / pictures.patch));
  }
  check_storage(pictures);
  check_limits(pictures.limits);
  (void)preparation_of(pictures);
  (void)decode_options_of(pictures);
}

/// For geometries of several tiles or sizes.
void add_varied(const PictureOptions& pictures, image::Preparation& p) {
  constexpr int32_t kMaxTilesAcross = 15;
  if (p.geometry == image::Geometry::kAnyRes) {
    if (p.merge != 1) throw UsageError("geometry anyres counts tokens of patches; merge must be 1");
    for (const auto& [rows, columns] : pairs_of(pictures.grids, "grids", kMaxTilesAcross))
      p.grid_points.push_back({p.side * columns, p.side * rows});
  }
  if (p.geometry == image::Geometry::kBucket) {
    for (const auto& [width, height] : pairs_of(pictures.buckets, "buckets", 16384)) {
      if (width % p.patch != 0 || height % p.patch != 0)
        throw UsageError("bucket {}x{} is not a multiple of the patch, {}", width, height, p.patch);
      p.buckets.push_back({width, height});
    }
  }
  if (p.geometry == image::Geometry::kBuckets) p.buckets = buckets_of(pictures);
  check_range("max grid tiles", p.max_grid_tiles, 0, 1024);
  check_range("max tiles", p.max_tiles, 1, 200);
  check_range("min tiles", p.min_tiles, 1, p.max_tiles);
  const int64_t cell = int64_t{p.patch} * p.merge * p.patch * p.merge;
  check_range("max prepared pixels", p.max_pixels, cell, int64_t{1} << 28);
  check_range("min prepared pixels", p.min_pixels, 1, p.max_pixels);
}

/// Size and hash of a file, or null without one.
Json file_json(const std::filesystem::path& path) {
  if (path.empty()) return nullptr;
  const MappedFile file(path);
  return {{"bytes", file.bytes().size()}, {"xxh3_128", xxh3_128_hex(file.bytes())}};
}

/// The same of a tokenizer, which may be more files than one.
Json tokenizer_json(const std::filesystem::path& path) {
  if (path.empty()) return nullptr;
  const std::string content = text::read_tokenizer(path);
  return {{"bytes", content.size()}, {"xxh3_128", xxh3_128_hex(content)}};
}

/// Keys that came after the first version stand there only if they are not at their default, so
/// that a set packed before is still "the same options".
Json pictures_json(const PictureOptions& pictures) {
  const PictureOptions usual;
  Json json = {{"side", pictures.side},         {"patch", pictures.patch},
               {"geometry", pictures.geometry}, {"filter", pictures.filter},
               {"storage", pictures.storage},   {"max_pixels", pictures.limits.max_pixels}};
  if (pictures.storage == "jpeg") {
    json["jpeg_quality"] = pictures.jpeg_quality;
    // Absent in sets of before the key, whose tables were made for each picture.
    if (!pictures.jpeg_optimize) json["jpeg_optimize"] = false;
  }
  if (pictures.storage == "webp") json["webp_quality"] = pictures.webp_quality;
  const auto add = [&](const char* key, const auto& value, const auto& normal) {
    if (value != normal) json[key] = value;
  };
  add("merge", pictures.merge, usual.merge);
  add("pass_order", pictures.pass_order, usual.pass_order);
  add("alpha", pictures.alpha, usual.alpha);
  add("orient", pictures.orient, usual.orient);
  add("max_side", pictures.limits.max_side, usual.limits.max_side);
  add("min_side", pictures.limits.min_side, usual.limits.min_side);
  add("max_aspect", pictures.limits.max_aspect, usual.limits.max_aspect);
  if (pictures.geometry == "anyres") {
    json["grids"] = pictures.grids;
    add("max_grid_tiles", pictures.max_grid_tiles, usual.max_grid_tiles);
  }
  if (pictures.geometry == "bucket") json["buckets"] = pictures.buckets;
  if (pictures.geometry == "internvl") {
    json["min_tiles"] = pictures.min_tiles;
    json["max_tiles"] = pictures.max_tiles;
    json["thumbnail"] = pictures.thumbnail;
  }
  if (pictures.geometry == "qwen") {
    json["min_prepared_pixels"] = pictures.min_pixels;
    json["max_prepared_pixels"] = pictures.max_pixels;
  }
  if (pictures.geometry == kBuckets) {
    for (const char* unused : {"side", "patch", "merge"}) json.erase(unused);
    json["buckets"] = bucket_words(buckets_of(pictures));
  }
  return json;
}

/// What goes with labels, and what a bucketed set must have.
void check_labels(const PackOptions& options) {
  if (options.source.labels.empty()) {
    if (!options.class_names.empty()) throw UsageError("class names without labels");
    if (options.tokenizer.empty())
      throw UsageError("there is no tokenizer; give --tokenizer FILE, or --labels for classes");
    return;
  }
  if (!is_bucketed(options))
    throw UsageError("labels need geometry buckets; a set for language models has texts");
  if (!options.tokenizer.empty())
    throw UsageError("labels \"{}\" and a tokenizer; a sample has a class or a caption",
                     options.source.labels);
}

/// Places of sources in absolute form: what "in.jsonl" gave is what "./in.jsonl" gives.
Json with_absolute_places(Json value) {
  if (!value.is_structured()) return value;
  for (auto& entry : value.items()) {
    Json& inner = entry.value();
    const bool place = value.is_object() && (entry.key() == "path" || entry.key() == "image_root");
    if (place && inner.is_string() && inner != "") {
      inner = std::filesystem::absolute(inner.get<std::string>()).lexically_normal().string();
    } else {
      inner = with_absolute_places(std::move(inner));
    }
  }
  return value;
}

std::optional<std::string> difference(const Json& there, const Json& now) {
  if (there == now) return std::nullopt;
  if (!there.is_object() || !now.is_object())
    return fmt::format(": {} there, {} now", there.dump(), now.dump());
  const auto value_of = [](const Json& object, const std::string& key) {
    return object.contains(key) ? object.at(key) : Json(nullptr);
  };
  for (const auto* object : {&now, &there}) {
    for (const auto& [key, unused] : object->items()) {
      const auto inner = difference(value_of(there, key), value_of(now, key));
      if (inner) return key + (inner->starts_with(':') ? "" : ".") + *inner;
    }
  }
  return std::nullopt;
}

}  // namespace

PictureOptions picture_options_from(const Json& recorded, const std::string& origin) {
  PictureOptions p;
  const auto read = [&](const char* key, auto& value) {
    if (recorded.contains(key)) recorded.at(key).get_to(value);
  };
  try {
    read("side", p.side);
    read("patch", p.patch);
    read("merge", p.merge);
    read("geometry", p.geometry);
    read("filter", p.filter);
    read("pass_order", p.pass_order);
    read("alpha", p.alpha);
    read("orient", p.orient);
    read("grids", p.grids);
    read("max_grid_tiles", p.max_grid_tiles);
    read("buckets", p.buckets);
    read("min_tiles", p.min_tiles);
    read("max_tiles", p.max_tiles);
    read("thumbnail", p.thumbnail);
    read("min_prepared_pixels", p.min_pixels);
    read("max_prepared_pixels", p.max_pixels);
  } catch (const Json::exception& error) {
    throw DataError("{}: options.pictures: {}", origin, error.what());
  }
  return p;
}

void check(const PackOptions& options) {
  if (!options.text_only) check_pictures(options.pictures);
  check_labels(options);
  if (!text::find_template(options.chat_template)) {
    throw UsageError("template \"{}\" is unknown; known: {}", options.chat_template,
                     fmt::join(text::template_names(), ", "));
  }
  const int32_t least = is_bucketed(options) ? 1 : 2;
  if (options.max_length < least)
    throw UsageError("max length is {} tokens; it must be at least {}", options.max_length, least);
  if (options.shard_bytes < 1) throw UsageError("shard size is 0 bytes");
}

image::Preparation preparation_of(const PictureOptions& pictures) {
  const auto geometry = image::geometry_from_name(pictures.geometry);
  if (!geometry) refuse("geometry", pictures.geometry, image::geometry_names());
  const auto filter = image::filter_from_name(pictures.filter);
  if (!filter) refuse("filter", pictures.filter, "nearest, box, bilinear, bicubic, lanczos");
  const auto order = image::pass_order_from_name(pictures.pass_order);
  if (!order) refuse("pass order", pictures.pass_order, "pillow12, pillow13");
  image::Preparation p{
      .geometry = *geometry, .side = pictures.side, .filter = *filter, .order = *order};
  p.patch = pictures.patch;
  p.merge = pictures.merge;
  p.min_tiles = pictures.min_tiles;
  p.max_tiles = pictures.max_tiles;
  p.max_grid_tiles = pictures.max_grid_tiles;
  p.thumbnail = pictures.thumbnail;
  p.min_pixels = pictures.min_pixels;
  p.max_pixels = pictures.max_pixels;
  add_varied(pictures, p);
  return p;
}

image::DecodeOptions decode_options_of(const PictureOptions& pictures) {
  const auto alpha = image::alpha_from_name(pictures.alpha);
  if (!alpha) refuse("alpha", pictures.alpha, "white, black, drop, #rrggbb");
  const auto orient = image::orient_from_name(pictures.orient);
  if (!orient) refuse("orient", pictures.orient, "apply, ignore");
  image::DecodeOptions options{.orient = *orient, .alpha = *alpha, .limits = pictures.limits};
  // Qwen's own limit: beyond it one side would be a fraction of a patch.
  constexpr double kQwenAspect = 200;
  if (pictures.geometry == "qwen" && options.limits.max_aspect == 0)
    options.limits.max_aspect = kQwenAspect;
  return options;
}

bool has_varied_pictures(const PackOptions& options) {
  const auto geometry = image::geometry_from_name(options.pictures.geometry);
  return !options.text_only && geometry && !image::is_uniform(*geometry);
}

bool is_bucketed(const PackOptions& options) {
  return !options.text_only && options.pictures.geometry == kBuckets;
}

int32_t picture_tokens(const PackOptions& options) {
  if (options.text_only || is_bucketed(options)) return 0;
  if (has_varied_pictures(options)) return 1;
  const PictureOptions& p = options.pictures;
  return image::shape_of({p.side, p.side}, preparation_of(p)).tokens;
}

Json canonical_options(const PackOptions& options) {
  Json json;
  json["source"] = source_json(options.source);
  json["tokenizer"] = tokenizer_json(options.tokenizer);
  if (!options.tokenizer_scheme.empty()) json["tokenizer_scheme"] = options.tokenizer_scheme;
  if (!options.class_names.empty()) json["class_names"] = file_json(options.class_names);
  json["template"] = options.chat_template;
  json["text_only"] = options.text_only;
  json["pictures"] = options.text_only ? Json(nullptr) : pictures_json(options.pictures);
  json["max_length"] = options.max_length;
  json["shard_bytes"] = options.shard_bytes;
  json["ids"] = file_json(options.ids);
  json["exclude"] = file_json(options.exclude);
  if (!options.for_plan.empty()) json["for_plan"] = file_json(options.for_plan);
  return json;
}

std::optional<std::string> first_difference(const Json& there, const Json& now) {
  return difference(with_absolute_places(there), with_absolute_places(now));
}

}  // namespace mm::data
