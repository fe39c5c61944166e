#include "lib/data/export_sample.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/sample.h"
#include "lib/image/encode.h"

namespace mm::data {
namespace {

std::vector<std::filesystem::path> shard_paths(const Dataset& set) {
  std::vector<std::filesystem::path> paths;
  for (const ShardEntry& shard : set.manifest().shards)
    paths.push_back(set.directory() / shard.file.file);
  return paths;
}

std::string_view extension_of(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8")) return ".jpg";
  if (bytes.starts_with("\x89PNG")) return ".png";
  if (bytes.starts_with("RIFF")) return ".webp";
  return ".bin";
}

ExportedPicture as_file(const StoredPicture& picture) {
  if (picture.codec != PictureCodec::kRaw && picture.tiles() > 1)
    throw DataError("a picture of {} tiles is no single file; pack with --store raw to export it",
                    picture.tiles());
  if (picture.codec != PictureCodec::kRaw)
    return {std::string(picture.bytes), std::string(extension_of(picture.bytes))};
  image::Image pixels(picture.width, picture.height * picture.tiles());
  if (pixels.rgb.size() != picture.bytes.size())
    throw DataError("a picture of {}x{} has {} bytes", picture.width, picture.height,
                    picture.bytes.size());
  std::copy(picture.bytes.begin(), picture.bytes.end(), pixels.rgb.begin());
  return {image::encode_png(pixels), ".png"};
}

}  // namespace

std::string ExportedSample::suffix(size_t i) const {
  const std::string& extension = pictures[i].extension;
  return pictures.size() == 1 ? extension : fmt::format(".{}{}", i, extension);
}

std::string ExportedSample::json() const {
  Json json = {{"id", key}, {"text", text}, {"trained", trained}};
  if (pictures.empty()) {
    json["conversations"] =
        Json::array({{{"from", "human"}, {"value", ""}}, {{"from", "gpt"}, {"value", text}}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

SampleExporter::SampleExporter(const Dataset& set, const text::Tokenizer& tokenizer)
    : set_(set), tokenizer_(tokenizer), shards_(shard_paths(set)) {}

ExportedSample SampleExporter::read(uint64_t row) const {
  const RowPlace place = set_.index().place(row);
  const auto payload = shards_.get(place.shard)->read({place.offset, place.bytes}, row);
  if (!payload)
    throw DataError("{}: sample {}: {}", set_.directory().string(), row, payload.failure().message);
  const auto decoded = decode_sample(std::as_bytes(std::span(*payload)),
                                     static_cast<uint32_t>(set_.index().size(row).tokens));
  ExportedSample sample{fmt::format("{:09}", row), std::string(set_.key(row)), {}, {}, {}};
  const std::vector<int32_t>& tokens = decoded.text.tokens;
  sample.text = tokenizer_.decode(tokens);
  for (const TokenSpan& span : decoded.text.trainable) {
    sample.trained.push_back(
        tokenizer_.decode(std::span(tokens).subspan(span.begin, span.end - span.begin)));
  }
  for (const StoredPicture& picture : decoded.pictures) sample.pictures.push_back(as_file(picture));
  return sample;
}

}  // namespace mm::data
