#include "lib/run/encoded_manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/data/json_fields.h"

namespace mm::run {
namespace {

constexpr const char* kFormat = "mmkit-encoded";
constexpr int kVersion = 1;

double number(const data::JsonFields& fields, std::string_view key) {
  const Json& value = fields.at(key);
  if (!value.is_number())
    throw DataError("{}: key \"{}\" is {}, expected a number", fields.origin(), key, value.dump());
  return value.get<double>();
}

constexpr std::array kShareFields{&CaptionShare::row,    &CaptionShare::rows,
                                  &CaptionShare::column, &CaptionShare::width,
                                  &CaptionShare::pooled, &CaptionShare::pooled_width};

Json shares_json(const std::vector<CaptionShare>& shares) {
  Json list = Json::array();
  for (const CaptionShare& share : shares) {
    Json numbers = Json::array();
    for (const auto field : kShareFields) numbers.push_back(share.*field);
    list.push_back(std::move(numbers));
  }
  return list;
}

/// Inside the width and the pooled width of `s`.
std::vector<CaptionShare> shares_from(const data::JsonFields& fields, const EncodedSettings& s) {
  const auto refuse = [&] {
    throw DataError("{}: key \"text_shares\" does not divide captions of width {}", fields.origin(),
                    s.text_width);
  };
  std::vector<CaptionShare> shares;
  for (const Json& numbers : fields.array("text_shares")) {
    if (!numbers.is_array() || numbers.size() != kShareFields.size()) refuse();
    CaptionShare share;
    for (size_t i = 0; i < kShareFields.size(); ++i) {
      const bool small = numbers[i].is_number_unsigned() && numbers[i].get<uint64_t>() <= INT32_MAX;
      if (!small) refuse();
      share.*kShareFields[i] = numbers[i].get<int64_t>();
    }
    if (share.column + share.width > s.text_width ||
        share.pooled + share.pooled_width > s.pooled_width)
      refuse();
    shares.push_back(share);
  }
  return shares;
}

bool flag(const data::JsonFields& fields, std::string_view key) {
  const Json& value = fields.at(key);
  if (!value.is_boolean())
    throw DataError("{}: key \"{}\" is {}, expected true or false", fields.origin(), key,
                    value.dump());
  return value.get<bool>();
}

}  // namespace

Json to_json(const EncodedSettings& s) {
  Json json{{"dataset", s.dataset},
            {"preprocessing", s.preprocessing},
            {"rows", s.rows},
            {"mean_only", s.mean_only},
            {"dtype", s.dtype},
            {"vae", s.vae},
            {"scaled", false},
            {"scaling_factor", s.scale},
            {"shift_factor", s.shift},
            {"channels", s.channels},
            {"factor", s.factor},
            {"text", s.text},
            {"text_width", s.text_width},
            {"pooled_width", s.pooled_width}};
  // Absent in sets of one encoder without padding, as those of before these keys.
  if (s.text_models.size() > 1 || s.text_padding > 0) json["text_models"] = s.text_models;
  if (s.text_padding > 0) json["text_padding"] = s.text_padding;
  if (s.text_length > 0) json["text_length"] = s.text_length;
  if (!s.text_shares.empty()) json["text_shares"] = shares_json(s.text_shares);
  if (!s.text_writing.empty()) json["text_writing"] = to_json(s.text_writing);
  return json;
}

EncodedSettings encoded_settings_from(const Json& json, const std::string& origin) {
  const data::JsonFields f(json, origin);
  EncodedSettings s;
  s.dataset = f.text("dataset");
  s.preprocessing = f.text("preprocessing");
  s.rows = f.integer<uint64_t>("rows");
  s.mean_only = flag(f, "mean_only");
  s.dtype = f.text("dtype");
  s.vae = f.text("vae");
  s.scale = number(f, "scaling_factor");
  s.shift = number(f, "shift_factor");
  s.channels = f.integer<int32_t>("channels");
  s.factor = f.integer<int32_t>("factor", 1);
  s.text = f.text("text");
  s.text_width = f.integer<int32_t>("text_width");
  s.pooled_width = f.integer<int32_t>("pooled_width");
  if (json.contains("text_padding")) s.text_padding = f.integer<int32_t>("text_padding");
  if (json.contains("text_length")) s.text_length = f.integer<int32_t>("text_length");
  if (json.contains("text_shares")) s.text_shares = shares_from(f, s);
  if (json.contains("text_writing"))
    s.text_writing = caption_writing_from(f.at("text_writing"), origin);
  if (json.contains("text_models")) {
    for (const Json& hash : f.array("text_models")) {
      if (!hash.is_string()) throw DataError("{}: key \"text_models\" holds no hashes", origin);
      s.text_models.push_back(hash.get<std::string>());
    }
  } else if (!s.text.empty()) {
    s.text_models = {s.text};
  }
  if (s.vae.empty() != (s.channels == 0) || s.text.empty() != (s.text_width == 0))
    throw DataError("{}: {} channels by VAE \"{}\", captions {} wide by text encoder \"{}\"",
                    origin, s.channels, s.vae, s.text_width, s.text);
  if (flag(f, "scaled") || s.scale == 0)
    throw DataError("{}: latents that are scaled already are not expected here", origin);
  return s;
}

std::string settings_text(const EncodedSettings& settings) {
  return to_json(settings).dump(2) + "\n";
}

std::string settings_hash(const EncodedSettings& settings) {
  return xxh3_128_hex(settings_text(settings));
}

std::string unit_name(uint64_t unit) { return fmt::format("unit-{:07}.safetensors", unit); }

uint64_t unit_count(uint64_t rows) { return rows / kUnitRows + (rows % kUnitRows != 0 ? 1 : 0); }

Json to_json(const EncodedManifest& manifest) {
  Json units = Json::array();
  for (const data::FileEntry& unit : manifest.units)
    units.push_back({{"file", unit.file}, {"bytes", unit.bytes}, {"xxh3_128", unit.xxh3_128}});
  Json json{{"format", kFormat},
            {"version", kVersion},
            {"settings", to_json(manifest.settings)},
            {"units", std::move(units)}};
  if (manifest.absent > 0) json["absent"] = manifest.absent;
  return json;
}

EncodedManifest read_encoded_manifest(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "manifest.json";
  const Json json = read_json_file(path);
  const std::string origin = path.string();
  const data::JsonFields fields(json, origin);
  if (fields.text("format") != kFormat || fields.integer<int>("version") != kVersion)
    throw DataError("{}: format {} version {}; expected {} {}", origin, fields.text("format"),
                    fields.at("version").dump(), kFormat, kVersion);
  EncodedManifest manifest{.settings = encoded_settings_from(fields.at("settings"), origin)};
  if (json.contains("absent")) manifest.absent = fields.integer<uint64_t>("absent");
  for (const Json& unit : fields.array("units")) {
    const data::JsonFields entry(unit, origin);
    manifest.units.push_back(
        {entry.text("file"), entry.integer<uint64_t>("bytes"), entry.text("xxh3_128")});
    if (manifest.units.back().file != unit_name(manifest.units.size() - 1))
      throw DataError("{}: {} where {} was expected", origin, manifest.units.back().file,
                      unit_name(manifest.units.size() - 1));
  }
  if (manifest.units.size() != unit_count(manifest.settings.rows))
    throw DataError("{}: {} units for {} rows", origin, manifest.units.size(),
                    manifest.settings.rows);
  return manifest;
}

std::string model_hash(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name == "config.json" || name.ends_with(".safetensors")) names.push_back(name);
  }
  std::ranges::sort(names);
  std::string all;
  for (const std::string& name : names)
    all += name + " " + data::describe_file(directory, name).xxh3_128 + "\n";
  return xxh3_128_hex(all);
}

std::string text_models_hash(const std::vector<std::string>& hashes, int64_t padding) {
  if (hashes.size() == 1 && padding == 0) return hashes.front();
  return xxh3_128_hex(fmt::format("{}\n{}", fmt::join(hashes, "\n"), padding));
}

std::string preprocessing_hash(const data::DatasetManifest& manifest,
                               const std::vector<CaptionWriting>& writing) {
  const Json json = data::to_json(manifest);
  std::string all = json.value("pictures", Json()).dump() + json.value("tokenizer", Json()).dump() +
                    std::to_string(manifest.max_length);
  if (!writing.empty()) all += to_json(writing).dump();
  return xxh3_128_hex(all);
}

EncodedSettings without_writing(EncodedSettings settings, const data::DatasetManifest& manifest) {
  settings.text_shares.clear();
  settings.text_writing.clear();
  settings.preprocessing = preprocessing_hash(manifest, {});
  return settings;
}

}  // namespace mm::run
