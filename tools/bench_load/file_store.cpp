#include "tools/bench_load/file_store.h"

#include "lib/base/file.h"
#include "lib/image/prepare.h"
#include "tools/bench_pack/bench_row.h"

namespace mm::bench {

FileStore::FileStore(const std::filesystem::path& folder, int32_t side, int repeat) : side_(side) {
  const auto found = pictures_below(folder);
  for (int i = 0; i < repeat; ++i) pictures_.insert(pictures_.end(), found.begin(), found.end());
}

std::vector<data::SampleSize> FileStore::sizes() const {
  return std::vector<data::SampleSize>(pictures_.size(), {.tokens = 2, .images = 1, .targets = 1});
}

Result<data::Sample> FileStore::read(uint64_t row) const {
  const std::string file = read_file(pictures_[row]);
  auto prepared = image::decode_prepared(image::as_bytes(file),
                                         {.geometry = image::Geometry::kCrop, .side = side_});
  if (!prepared) return prepared.failure();
  data::Sample sample;
  sample.text = {.tokens = {1, 2}, .trainable = {{1, 2}}, .image_begin = {0}};
  sample.pixels = std::move(prepared->image.rgb);
  return sample;
}

}  // namespace mm::bench
