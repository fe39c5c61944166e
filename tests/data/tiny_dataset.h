#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/data/dataset_manifest.h"
#include "lib/data/index.h"
#include "lib/data/sample.h"
#include "lib/data/shard.h"

namespace mm::data::test {

/// A fresh directory that goes away with its owner.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "mm_data_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TempDir() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TempDir(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline constexpr int32_t kSide = 4, kPatches = 4, kImageToken = 6, kVocabulary = 100;

/// Sample i of a tiny set: placeholders of one picture (odd i), then 3 + i % 5 words whose last two
/// are trainable. Pixels are all i % 256.
inline Sample tiny_sample(uint32_t i) {
  Sample sample;
  sample.text.tokens = {1};
  if (i % 2 == 1) {
    sample.text.image_begin = {1};
    sample.text.tokens.insert(sample.text.tokens.end(), kPatches, kImageToken);
    sample.pixels.assign(kSide * kSide * 3, static_cast<uint8_t>(i));
  }
  for (uint32_t w = 0; w < 3 + i % 5; ++w) {
    sample.text.tokens.push_back(static_cast<int32_t>(10 + (i + w) % 90));
  }
  const auto length = static_cast<uint32_t>(sample.text.tokens.size());
  sample.text.trainable = {{length - 2, length}};
  return sample;
}

inline std::string encode_tiny(const Sample& sample) {
  std::vector<StoredPicture> pictures;
  const std::string_view pixels(reinterpret_cast<const char*>(sample.pixels.data()),
                                sample.pixels.size());
  for (size_t i = 0; i < sample.text.image_begin.size(); ++i) {
    pictures.push_back({PictureCodec::kRaw, kSide, kSide,
                        pixels.substr(i * kSide * kSide * 3, kSide * kSide * 3)});
  }
  return encode_sample(sample.text, pictures);
}

inline FileEntry write_entry(const std::filesystem::path& directory, const std::string& name,
                             std::string_view content) {
  write_file_atomic(directory / name, content);
  return {name, content.size(), xxh3_128_hex(content)};
}

/// Writes a whole data set of tiny_sample(0..count-1) in shards of `per_shard` samples.
inline void write_tiny_dataset(const std::filesystem::path& directory, uint32_t count,
                               uint32_t per_shard = 8) {
  std::filesystem::create_directories(directory);
  DatasetManifest manifest;
  std::vector<IndexRow> rows;
  for (uint32_t begin = 0; begin < count; begin += per_shard) {
    const auto shard = static_cast<uint32_t>(manifest.shards.size());
    const std::string name = fmt::format("shard-{:05}.mms", shard);
    const uint32_t end = std::min(count, begin + per_shard);
    ShardWriter writer(directory / name, 7);
    for (uint32_t i = begin; i < end; ++i) {
      const Sample sample = tiny_sample(i);
      const auto place = writer.append(i, encode_tiny(sample));
      const int32_t side = sample.text.image_begin.empty() ? 0 : kSide;
      rows.push_back({i, place.offset, shard, static_cast<uint32_t>(place.bytes),
                      size_of(sample.text), side, side, fmt::format("sample {}", i)});
      manifest.counts.tokens += sample.text.tokens.size();
      manifest.counts.images += sample.text.image_begin.size();
    }
    writer.finish();
    manifest.shards.push_back({describe_file(directory, name), end - begin});
  }
  write_index(directory / "index.mmi", rows);
  manifest.counts.samples = count;
  manifest.index = describe_file(directory, "index.mmi");
  manifest.ledger = write_entry(directory, "ledger.jsonl", "");
  manifest.tokenizer = {"sentencepiece",
                        write_entry(directory, "tokenizer.model", "toy"),
                        kVocabulary,
                        kImageToken,
                        1,
                        2,
                        0};
  manifest.pictures = {"squash", "bicubic", "raw", kSide, 2, kPatches};
  manifest.chat_template = "plain";
  manifest.max_length = 32;
  manifest.options = Json::object();
  write_file_atomic(directory / "manifest.json", to_json(manifest).dump(2) + "\n");
}

}  // namespace mm::data::test
