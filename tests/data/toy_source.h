#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/data/pack_dataset.h"

namespace mm::data::test {

inline std::filesystem::path field_picture(const std::string& name) {
  return std::filesystem::path(MM_TEST_DATA) / "field" / name;
}
inline std::filesystem::path toy_tokenizer() {
  return std::filesystem::path(MM_TEST_DATA) / "text/fixtures/toy_words.json";
}

/// A caption of 1 to 9 words of the toy tokenizer, other for each i.
inline std::string toy_caption(uint32_t i) {
  static const std::vector<std::string> words = {"a",  "cat", "dog", "and", "that",
                                                 "no", "yes", "red", "is"};
  std::string caption = words[i % words.size()];
  for (uint32_t w = 0; w < i % 9; ++w) caption += " " + words[(i / 9 + w * w) % words.size()];
  return caption;
}

/// JSONL of (picture, caption) rows; pictures are paths below tests/field.
inline void write_jsonl(const std::filesystem::path& path,
                        const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string text;
  for (const auto& [image, caption] : rows)
    text += Json{{"image", image}, {"text", caption}}.dump() + "\n";
  write_file_atomic(path, text);
}

/// `count` rows over good small pictures.
inline std::vector<std::pair<std::string, std::string>> good_rows(uint32_t count) {
  static const std::vector<std::string> pictures = {"rgba.png",          "palette.png", "gray.jpg",
                                                    "sub_422.jpg",       "exif_6.jpg",  "thin.png",
                                                    "trailing_bytes.jpg"};
  std::vector<std::pair<std::string, std::string>> rows;
  for (uint32_t i = 0; i < count; ++i)
    rows.emplace_back(pictures[i % pictures.size()], toy_caption(i));
  return rows;
}

/// Options for a JSONL of field pictures: 8x8 pixels, 4 tokens a picture.
inline PackOptions toy_options(const std::filesystem::path& jsonl) {
  PackOptions options;
  options.source = {.kind = SourceKind::kJsonl,
                    .path = jsonl,
                    .image_root = std::filesystem::path(MM_TEST_DATA) / "field"};
  options.tokenizer = toy_tokenizer();
  options.pictures.side = 8;
  options.pictures.patch = 4;
  options.max_length = 64;
  options.shard_bytes = 4096;
  return options;
}

/// Name to content of all files below a directory.
inline std::map<std::string, std::string> contents(const std::filesystem::path& directory) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) {
      all[entry.path().lexically_relative(directory).string()] = read_file(entry.path());
    }
  }
  return all;
}

}  // namespace mm::data::test
