#pragma once
// Data sets of twelve captioned pictures in the toy tokenizer's words, prepared as each family of
// models reads them: tiles of 8 pixels, or any size in patches of 4.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/data/pack_dataset.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

namespace mm::run::test {

/// DIR/data from DIR/in.jsonl; `pictures` changes the options.
inline void pack_varied(const data::test::TempDir& dir,
                        const std::function<void(data::PictureOptions&)>& pictures) {
  std::vector<std::pair<std::string, std::string>> rows;
  const std::vector<std::string> names = {"rgba.png", "gray.jpg", "sub_422.jpg", "exif_6.jpg"};
  for (uint32_t i = 0; i < 12; ++i)
    rows.emplace_back(names[i % names.size()], data::test::toy_caption(i));
  data::test::write_jsonl(dir / "in.jsonl", rows);
  data::PackOptions options = data::test::toy_options(dir / "in.jsonl");
  options.max_length = 200;
  pictures(options.pictures);
  const data::PackResult result = data::pack_dataset(options, {.output = dir / "data"});
  REQUIRE(result.manifest.counts.bad == 0);
}

inline void anyres(data::PictureOptions& pictures) { pictures.geometry = "anyres"; }
inline void onevision(data::PictureOptions& pictures) {
  pictures.geometry = "anyres";
  pictures.max_grid_tiles = 1;
}
inline void qwen(data::PictureOptions& pictures) {
  pictures.geometry = "qwen";
  pictures.merge = 2;
  pictures.min_pixels = 64;
  pictures.max_pixels = 16 * 64;
}

}  // namespace mm::run::test
