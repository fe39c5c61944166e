#include "lib/run/hf_pictures.h"

#include <cmath>
#include <map>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/file.h"

namespace mm::run {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = 16 << 20;

/// Pillow's numbers.
const std::map<int64_t, std::string>& filters() {
  static const std::map<int64_t, std::string> kFilters = {
      {0, "nearest"}, {1, "lanczos"}, {2, "bilinear"}, {3, "bicubic"}, {4, "box"}};
  return kFilters;
}

/// The settings of one file, with messages that name it.
class Settings {
 public:
  Settings(Json json, std::string origin) : json_(std::move(json)), origin_(std::move(origin)) {}

  [[noreturn]] void fail(const char* key, const std::string& expected) const {
    throw DataError("{}: \"{}\" is {}; expected {}", origin_, key,
                    json_.contains(key) ? json_.at(key).dump() : "absent", expected);
  }
  bool flag(const char* key, bool def) const {
    const Json value = json_.value(key, Json());
    if (value.is_null()) return def;
    if (!value.is_boolean()) fail(key, "true or false");
    return value.get<bool>();
  }
  bool has(const char* key) const { return json_.contains(key) && !json_.at(key).is_null(); }

  /// A side in either spelling; nothing where the key is absent.
  std::optional<int64_t> side(const char* key) const {
    if (!has(key)) return std::nullopt;
    const Json& value = json_.at(key);
    if (value.is_number_integer()) return checked(key, value);
    if (value.is_object() && value.contains("shortest_edge"))
      return checked(key, value.at("shortest_edge"));
    if (value.is_object() && value.contains("height") && value.contains("width")) {
      if (value.at("height") != value.at("width")) fail(key, "a square");
      return checked(key, value.at("height"));
    }
    fail(key, "a number, {\"shortest_edge\"} or {\"height\", \"width\"}");
  }
  /// Whether the size keeps the aspect ratio: plain numbers do where a crop follows.
  bool is_edge(const char* key) const {
    return has(key) && (json_.at(key).is_number() || json_.at(key).contains("shortest_edge"));
  }
  std::vector<double> three(const char* key, const std::vector<double>& def) const {
    if (!has(key)) return def;
    const Json& value = json_.at(key);
    std::vector<double> numbers;
    for (const Json& number : value) {
      if (!number.is_number()) fail(key, "three numbers");
      numbers.push_back(number.get<double>());
    }
    if (numbers.size() != 3) fail(key, "three numbers");
    return numbers;
  }
  std::string filter() const {
    if (!has("resample")) return "bicubic";
    const Json& value = json_.at("resample");
    const auto known =
        value.is_number_integer() ? filters().find(value.get<int64_t>()) : filters().end();
    if (known == filters().end())
      fail("resample", "0 nearest, 1 lanczos, 2 bilinear, 3 bicubic, 4 box");
    return known->second;
  }
  /// 1 to `most`; `def` where the key is absent.
  int64_t count(const char* key, int64_t def, int64_t most) const {
    return has(key) ? counted(key, json_.at(key), most) : def;
  }
  /// The same of a key inside an object.
  int64_t count_in(const char* key, const char* inner, int64_t def, int64_t most) const {
    if (!has(key) || !json_.at(key).is_object()) return def;
    const Json value = json_.at(key).value(inner, Json());
    return value.is_null() ? def : counted(key, value, most);
  }
  /// A list of pairs of pixels.
  std::vector<std::vector<int64_t>> points(const char* key) const {
    constexpr size_t kMost = 1024;
    const Json& list = json_.at(key);
    if (!list.is_array() || list.empty() || list.size() > kMost)
      fail(key, "a list of [height, width]");
    std::vector<std::vector<int64_t>> points;
    for (const Json& point : list) {
      if (!point.is_array() || point.size() != 2) fail(key, "a list of [height, width]");
      points.push_back({checked(key, point[0]), checked(key, point[1])});
    }
    return points;
  }
  double number(const char* key, double def) const {
    if (!has(key)) return def;
    if (!json_.at(key).is_number()) fail(key, "a number");
    return json_.at(key).get<double>();
  }

 private:
  int64_t counted(const char* key, const Json& value, int64_t most) const {
    if (!value.is_number_integer() || value < 1 || value > most)
      fail(key, fmt::format("1 to {}", most));
    return value.get<int64_t>();
  }
  int64_t checked(const char* key, const Json& value) const {
    if (!value.is_number_integer() || value < 1 || value > 16384) fail(key, "1 to 16384 pixels");
    return value.get<int64_t>();
  }
  Json json_;
  std::string origin_;
};

/// Nothing where no file says how pictures are prepared.
std::optional<Settings> find_settings(const fs::path& directory) {
  const fs::path own = directory / "preprocessor_config.json";
  const fs::path nested = directory / "processor_config.json";
  for (const fs::path& path : {own, nested}) {
    if (!fs::is_regular_file(path)) continue;
    Json json = parse_json(read_file(path, kMaxBytes), path.string(), {.max_depth = 32});
    if (json.is_object() && json.contains("image_processor")) json = json.at("image_processor");
    const bool states = json.contains("image_mean") || json.contains("size");
    if (path == nested && !states) continue;
    if (!json.is_object()) throw DataError("{}: a JSON object expected", path.string());
    return Settings{std::move(json), path.string()};
  }
  return std::nullopt;
}

Settings open_settings(const fs::path& directory) {
  if (auto settings = find_settings(directory)) return *std::move(settings);
  throw IoError(
      "{}: no preprocessor_config.json, nor a processor_config.json with \"image_processor\": "
      "nothing says how pictures are prepared",
      directory.string());
}

}  // namespace

namespace {

void read_square(const Settings& settings, HfPictures& pictures) {
  const std::optional<int64_t> size = settings.side("size"), crop = settings.side("crop_size");
  const bool crops = settings.flag("do_center_crop", crop.has_value());
  if (!size && !crop) settings.fail("size", "the side of the prepared picture");
  pictures.side = crops && crop ? *crop : size.value_or(0);
  if (settings.flag("do_pad", false)) {
    pictures.geometry = "pad";
  } else if (crops) {
    if (size && *size != pictures.side)
      settings.fail("crop_size", "the same as \"size\": no border is cut off beyond the square");
    pictures.geometry = "crop";
  } else {
    if (settings.is_edge("size"))
      settings.fail("size", "{\"height\", \"width\"}, or a centre crop");
    pictures.geometry = "squash";
  }
}

/// Tiles: whole picture and parts of it, each resized to `size` and cropped to the same.
void read_tiles(const Settings& settings, HfPictures& pictures) {
  pictures.geometry = "anyres";
  const std::optional<int64_t> size = settings.side("size"), crop = settings.side("crop_size");
  if (!size) settings.fail("size", "the side of a tile");
  pictures.side = *size;
  if (settings.flag("do_center_crop", crop.has_value()) && crop.value_or(*size) != *size)
    settings.fail("crop_size", "the same as \"size\": tiles are not cropped");
  pictures.grid_points = settings.points("image_grid_pinpoints");
}

/// Pictures of any size.
void read_sized(const Settings& settings, HfPictures& pictures) {
  pictures.geometry = "qwen";
  pictures.patch = settings.count("patch_size", pictures.patch, 1024);
  pictures.merge = settings.count("merge_size", pictures.merge, 64);
  // Any picture, however small, becomes as large as the least area and as one merged patch.
  constexpr int64_t kMostPixels = int64_t{1} << 28, kMostLeast = 1 << 24, kMostSide = 1 << 12;
  if (pictures.patch * pictures.merge > kMostSide)
    settings.fail("merge_size", fmt::format("at most {} pixels a side with patch_size {}",
                                            kMostSide, pictures.patch));
  const auto area = [&](const char* key, const char* edge, int64_t usual, int64_t most) {
    return settings.has(key) ? settings.count(key, usual, most)
                             : settings.count_in("size", edge, usual, most);
  };
  pictures.min_pixels = area("min_pixels", "shortest_edge", pictures.min_pixels, kMostLeast);
  pictures.max_pixels = area("max_pixels", "longest_edge", pictures.max_pixels, kMostPixels);
  if (pictures.min_pixels > pictures.max_pixels)
    settings.fail("min_pixels", "no more than the largest number of pixels");
}

}  // namespace

HfPictures read_hf_pictures(const fs::path& directory) {
  const Settings settings = open_settings(directory);
  for (const char* key : {"do_resize", "do_normalize", "do_rescale"})
    if (!settings.flag(key, true)) settings.fail(key, "true");
  if (std::abs(settings.number("rescale_factor", 1 / 255.) * 255 - 1) > 1e-6)
    settings.fail("rescale_factor", "1 / 255");
  HfPictures pictures;
  if (settings.has("merge_size")) {
    read_sized(settings, pictures);
  } else if (settings.has("image_grid_pinpoints")) {
    read_tiles(settings, pictures);
  } else {
    read_square(settings, pictures);
  }
  pictures.filter = settings.filter();
  pictures.mean = settings.three("image_mean", pictures.mean);
  pictures.std = settings.three("image_std", pictures.std);
  return pictures;
}

std::optional<HfNorm> read_hf_norm(const fs::path& directory) {
  const std::optional<Settings> settings = find_settings(directory);
  if (!settings || (!settings->has("image_mean") && !settings->has("image_std")))
    return std::nullopt;
  HfNorm norm{.mean = settings->three("image_mean", HfPictures().mean),
              .std = settings->three("image_std", HfPictures().std)};
  for (const double deviation : norm.std)
    if (deviation <= 0) settings->fail("image_std", "three numbers above 0");
  return norm;
}

namespace {

const char* class_name(HfProcessor processor, bool pad) {
  switch (processor) {
    case HfProcessor::kClip:
      return pad ? "LlavaImageProcessor" : "CLIPImageProcessor";
    case HfProcessor::kSiglip:
      return pad ? "LlavaImageProcessor" : "SiglipImageProcessor";
    case HfProcessor::kLlavaNext:
      return "LlavaNextImageProcessor";
    case HfProcessor::kLlavaOnevision:
      return "LlavaOnevisionImageProcessor";
    case HfProcessor::kQwen2Vl:
      return "Qwen2VLImageProcessor";
  }
  throw InternalError("processor {} has no class", static_cast<int>(processor));
}

void add_square(const HfPictures& p, Json& json) {
  const Json square{{"height", p.side}, {"width", p.side}};
  const bool crop = p.geometry == "crop", pad = p.geometry == "pad";
  json["size"] = crop || pad ? Json{{"shortest_edge", p.side}} : square;
  json["do_center_crop"] = crop || pad;
  json["crop_size"] = square;
  if (pad) json["do_pad"] = true;
}

void add_tiles(const HfPictures& p, HfProcessor processor, Json& json) {
  const Json square{{"height", p.side}, {"width", p.side}};
  const bool next = processor == HfProcessor::kLlavaNext;
  json["size"] = next ? Json{{"shortest_edge", p.side}} : square;
  if (next) {
    json["do_center_crop"] = true;
    json["crop_size"] = square;
  }
  json["do_pad"] = true;
  json["image_grid_pinpoints"] = p.grid_points;
}

void add_sized(const HfPictures& p, Json& json) {
  json["min_pixels"] = p.min_pixels;
  json["max_pixels"] = p.max_pixels;
  json["size"] = {{"shortest_edge", p.min_pixels}, {"longest_edge", p.max_pixels}};
  json["patch_size"] = p.patch;
  json["merge_size"] = p.merge;
  json["temporal_patch_size"] = 2;
}

}  // namespace

Json to_json(const HfPictures& p, HfProcessor processor) {
  int64_t resample = 3;
  for (const auto& [number, name] : filters())
    if (name == p.filter) resample = number;
  Json json{{"image_processor_type", class_name(processor, p.geometry == "pad")},
            {"do_convert_rgb", true},
            {"do_resize", true},
            {"resample", resample},
            {"do_rescale", true},
            {"rescale_factor", 1 / 255.},
            {"do_normalize", true},
            {"image_mean", p.mean},
            {"image_std", p.std}};
  if (p.geometry == "qwen") {
    add_sized(p, json);
  } else if (p.geometry == "anyres") {
    add_tiles(p, processor, json);
  } else {
    add_square(p, json);
  }
  return json;
}

}  // namespace mm::run
