#include "lib/data/dataset_manifest.h"

#include <algorithm>
#include <set>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/data/json_fields.h"

namespace mm::data {
namespace {

constexpr std::string_view kFormat = "mmkit-dataset";
constexpr uint64_t kMaxManifestBytes = uint64_t{256} << 20;

Json file_json(const FileEntry& entry) {
  return {{"file", entry.file}, {"bytes", entry.bytes}, {"xxh3_128", entry.xxh3_128}};
}

/// A name that stays inside the directory: no separator, no leading dot.
FileEntry file_from(const JsonFields& in) {
  FileEntry entry{in.text("file"), in.integer<uint64_t>("bytes"), in.text("xxh3_128")};
  if (entry.file.empty() || entry.file[0] == '.' ||
      entry.file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    throw DataError("{}: file name \"{}\" is not a plain name", in.origin(), entry.file);
  }
  const bool hex = std::all_of(entry.xxh3_128.begin(), entry.xxh3_128.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (entry.xxh3_128.size() != 32 || !hex) {
    throw DataError("{}: xxh3_128 of {} is not 32 hexadecimal digits", in.origin(), entry.file);
  }
  return entry;
}

Json tokenizer_json(const TokenizerEntry& entry) {
  Json json = file_json(entry.file);
  json["kind"] = entry.kind;
  json["vocab_size"] = entry.vocab_size;
  json["image_token_id"] = entry.image_token_id;
  json["bos_id"] = entry.bos_id;
  json["eos_id"] = entry.eos_id;
  json["pad_id"] = entry.pad_id;
  if (!entry.classes.empty()) json["classes"] = entry.classes;
  return json;
}

TokenizerEntry tokenizer_from(const JsonFields& in) {
  TokenizerEntry entry;
  entry.kind = in.text("kind");
  entry.file = file_from(in);
  entry.vocab_size = in.integer<int32_t>("vocab_size", 1);
  entry.image_token_id = in.integer<int32_t>("image_token_id", -1);
  entry.bos_id = in.integer<int32_t>("bos_id", -1);
  entry.eos_id = in.integer<int32_t>("eos_id", -1);
  entry.pad_id = in.integer<int32_t>("pad_id", -1);
  if (!in.json().contains("classes")) return entry;
  for (const Json& name : in.array("classes")) {
    if (!name.is_string()) throw DataError("{}: a class name is no string", in.origin());
    entry.classes.push_back(name.get<std::string>());
  }
  if (entry.classes.size() != static_cast<size_t>(entry.vocab_size))
    throw DataError("{}: {} class names for {} ids", in.origin(), entry.classes.size(),
                    entry.vocab_size);
  return entry;
}

/// [[width, height], ...]: none twice, none empty.
std::vector<BucketShape> buckets_from(const JsonFields& in) {
  std::vector<BucketShape> buckets;
  for (const Json& pair : in.array("buckets")) {
    const bool good = pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() &&
                      pair[1].is_number_unsigned();
    const uint64_t width = good ? pair[0].get<uint64_t>() : 0;
    const uint64_t height = good ? pair[1].get<uint64_t>() : 0;
    const BucketShape shape{static_cast<uint16_t>(height), static_cast<uint16_t>(width)};
    if (width < 1 || width > UINT16_MAX || height < 1 || height > UINT16_MAX ||
        std::ranges::find(buckets, shape) != buckets.end())
      throw DataError("{}: bucket {} is no new pair of width and height", in.origin(), pair.dump());
    buckets.push_back(shape);
  }
  if (buckets.empty()) throw DataError("{}: buckets is empty", in.origin());
  return buckets;
}

PictureEntry pictures_from(const JsonFields& in) {
  PictureEntry entry;
  entry.geometry = in.text("geometry");
  entry.filter = in.text("filter");
  entry.storage = in.text("storage");
  entry.side = in.integer<int32_t>("side");
  entry.patch = in.integer<int32_t>("patch");
  entry.patches = in.integer<int32_t>("patches");
  entry.varied = in.json().contains("varied") && in.at("varied") == Json(true);
  if (in.json().contains("buckets")) entry.buckets = buckets_from(in);
  if (entry.side > 65535 || (entry.side > 0 && !entry.varied && entry.patches < 1)) {
    throw DataError("{}: pictures of side {} with {} patches", in.origin(), entry.side,
                    entry.patches);
  }
  return entry;
}

/// The oldest version that says it all, so that older programs read what they can.
int version_of(const PictureEntry& pictures) {
  const std::string& storage = pictures.storage;
  if (!pictures.buckets.empty()) return kDatasetVersion;
  const bool first = storage.empty() || storage == "raw" || storage == "jpeg";
  return first && !pictures.varied ? 1 : 2;
}

DatasetCounts counts_from(const JsonFields& in) {
  DatasetCounts counts;
  counts.samples = in.integer<uint64_t>("samples");
  counts.tokens = in.integer<uint64_t>("tokens");
  counts.images = in.integer<uint64_t>("images");
  counts.targets = in.integer<uint64_t>("targets");
  counts.longest = in.integer<uint64_t>("longest");
  counts.bad = in.integer<uint64_t>("bad");
  counts.skipped = in.integer<uint64_t>("skipped");
  return counts;
}

/// Of everything in the manifest but itself, in the one way that it can be written without blanks.
std::string checksum_of(Json json) {
  json.erase("checksum");
  return xxh3_128_hex(json.dump());
}

}  // namespace

Json to_json(const DatasetManifest& manifest) {
  const DatasetCounts& n = manifest.counts;
  const PictureEntry& p = manifest.pictures;
  Json json;
  json["format"] = kFormat;
  json["version"] = version_of(p);
  json["counts"] = {{"samples", n.samples}, {"tokens", n.tokens},   {"images", n.images},
                    {"targets", n.targets}, {"longest", n.longest}, {"bad", n.bad},
                    {"skipped", n.skipped}};
  const SourceRows& rows = manifest.source_rows;
  if (!rows.hash.empty()) json["source_rows"] = {{"count", rows.count}, {"hash", rows.hash}};
  json["tokenizer"] = tokenizer_json(manifest.tokenizer);
  json["template"] = manifest.chat_template;
  json["max_length"] = manifest.max_length;
  json["pictures"] = {{"geometry", p.geometry}, {"side", p.side},     {"patch", p.patch},
                      {"patches", p.patches},   {"filter", p.filter}, {"storage", p.storage}};
  if (p.varied) json["pictures"]["varied"] = true;
  for (const BucketShape& b : p.buckets)
    json["pictures"]["buckets"].push_back(Json::array({b.width, b.height}));
  json["index"] = file_json(manifest.index);
  json["ledger"] = file_json(manifest.ledger);
  json["shards"] = Json::array();
  for (const ShardEntry& shard : manifest.shards) {
    Json entry = file_json(shard.file);
    entry["samples"] = shard.samples;
    json["shards"].push_back(std::move(entry));
  }
  if (!manifest.bucketing.is_null()) json["bucketing"] = manifest.bucketing;
  if (!manifest.duplicates.is_null()) json["duplicates"] = manifest.duplicates;
  json["options"] = manifest.options;
  json["checksum"] = checksum_of(json);
  return json;
}

DatasetManifest manifest_from_json(const Json& json, std::string_view origin) {
  const JsonFields in(json, origin);
  if (in.text("format") != kFormat) {
    throw DataError("{}: format \"{}\", expected \"{}\"", origin, in.text("format"), kFormat);
  }
  const auto version = in.integer<int32_t>("version");
  if (version < 1 || version > kDatasetVersion) {
    throw DataError("{}: version {}, this program reads 1 to {}; pack the data again", origin,
                    version, kDatasetVersion);
  }
  DatasetManifest manifest;
  manifest.counts = counts_from(in.object("counts"));
  if (json.contains("source_rows")) {
    const JsonFields rows = in.object("source_rows");
    manifest.source_rows = {rows.integer<uint64_t>("count"), rows.text("hash")};
  }
  manifest.tokenizer = tokenizer_from(in.object("tokenizer"));
  manifest.chat_template = in.text("template");
  manifest.max_length = in.integer<int32_t>("max_length", 1);
  manifest.pictures = pictures_from(in.object("pictures"));
  manifest.index = file_from(in.object("index"));
  manifest.ledger = file_from(in.object("ledger"));
  std::set<std::string> names = {manifest.index.file, manifest.ledger.file,
                                 manifest.tokenizer.file.file};
  uint64_t samples = 0;
  for (const Json& shard : in.array("shards")) {
    const JsonFields fields(shard, origin);
    manifest.shards.push_back({file_from(fields), fields.integer<uint64_t>("samples")});
    samples += manifest.shards.back().samples;
    if (!names.insert(manifest.shards.back().file.file).second) {
      throw DataError("{}: file {} is listed twice", origin, manifest.shards.back().file.file);
    }
  }
  if (samples != manifest.counts.samples) {
    throw DataError("{}: its shards hold {} samples, counts says {}", origin, samples,
                    manifest.counts.samples);
  }
  if (json.contains("bucketing")) manifest.bucketing = in.object("bucketing").json();
  if (json.contains("duplicates")) manifest.duplicates = in.object("duplicates").json();
  manifest.options = in.object("options").json();
  // Sets that were packed before it was written have none.
  if (json.contains("checksum") && in.text("checksum") != checksum_of(json)) {
    throw DataError("{}: damaged: its content does not match its checksum", origin);
  }
  return manifest;
}

std::set<std::string> files_of(const DatasetManifest& manifest) {
  std::set<std::string> names = {"manifest.json", manifest.index.file, manifest.ledger.file,
                                 manifest.tokenizer.file.file};
  for (const ShardEntry& shard : manifest.shards) names.insert(shard.file.file);
  return names;
}

DatasetManifest read_manifest(const std::filesystem::path& directory) {
  const auto path = directory / "manifest.json";
  if (!std::filesystem::exists(path)) {
    throw DataError(
        "{}: no manifest.json, so it is no packed data set; make one with `mmshard pack`",
        directory.string());
  }
  return manifest_from_json(parse_json(read_file(path, kMaxManifestBytes), path.string()),
                            path.string());
}

FileEntry describe_file(const std::filesystem::path& directory, const std::string& name) {
  const MappedFile file(directory / name);
  return {name, file.bytes().size(), xxh3_128_hex(file.bytes())};
}

}  // namespace mm::data
