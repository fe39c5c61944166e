#include "tools/bench_load/limits.h"

#include "lib/base/file.h"
#include "lib/data/sample.h"
#include "lib/data/shard.h"
#include "lib/image/decode_into.h"
#include "lib/image/prepare.h"

namespace mm::bench {

double load_limit_cpu_s(const data::Dataset& set) {
  constexpr size_t kBlock = size_t{1} << 20;
  const bool decode = set.manifest().pictures.storage == "jpeg";
  double cpu_s = 0;
  std::string block;
  for (const auto& shard : set.manifest().shards) {
    const File file = File::open_read(set.directory() / shard.file.file);
    cpu_s += spend([&] {
               for (uint64_t at = 0; at < shard.file.bytes; at += block.size()) {
                 block.resize(std::min<uint64_t>(kBlock, shard.file.bytes - at));
                 file.read_at(at, std::as_writable_bytes(std::span(block)));
               }
             }).cpu_s;
  }
  if (!decode) return cpu_s;
  std::vector<uint8_t> pixels;
  for (uint64_t row = 0; row < set.rows(); ++row) {
    const data::RowPlace place = set.index().place(row);
    const data::ShardReader shard(set.directory() / set.manifest().shards[place.shard].file.file);
    const auto payload = shard.read({place.offset, place.bytes}, row);
    const auto sample = data::decode_sample(std::as_bytes(std::span(*payload)),
                                            static_cast<uint32_t>(set.index().size(row).tokens));
    cpu_s += spend([&] {
               for (const data::StoredPicture& picture : sample.pictures) {
                 const auto file = image::as_bytes(picture.bytes);
                 const auto header = image::probe(file);
                 pixels.resize(size_t{3} * picture.width * picture.height);
                 (void)image::decode_into(file, *header, pixels);
               }
             }).cpu_s;
  }
  return cpu_s;
}

Row load_files(const std::filesystem::path& folder, int32_t side, int repeat) {
  Row row{.what = "load", .system = "files: decode, resize, crop", .storage = "files"};
  const auto pictures = pictures_below(folder);
  const image::Preparation preparation{.geometry = image::Geometry::kCrop, .side = side};
  uint64_t bytes = 0;
  std::vector<uint8_t> batch;
  row.spent = spend([&] {
    for (int i = 0; i < repeat; ++i) {
      for (const auto& path : pictures) {
        const std::string file = read_file(path);
        const auto prepared = image::decode_prepared(image::as_bytes(file), preparation);
        if (!prepared) continue;
        if (row.samples++ % 32 == 0) batch.clear();
        batch.insert(batch.end(), prepared->image.rgb.begin(), prepared->image.rgb.end());
        bytes += file.size();
      }
    }
  });
  row.bytes_sample = static_cast<double>(bytes) / static_cast<double>(row.samples);
  return row;
}

}  // namespace mm::bench
