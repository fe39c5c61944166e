#include <doctest/doctest.h>

#include <numeric>

#include "lib/data/collate.h"
#include "lib/data/contact_sheet.h"
#include "lib/data/dataset.h"
#include "lib/data/verify_dataset.h"
#include "lib/image/decode.h"
#include "lib/image/tiling.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

PackOptions options_of(const std::string& geometry, const std::filesystem::path& jsonl) {
  PackOptions options = toy_options(jsonl);
  options.pictures.geometry = geometry;
  options.pictures.side = 28;
  options.pictures.patch = 7;
  options.pictures.merge = geometry == "qwen" || geometry == "internvl" ? 2 : 1;
  options.pictures.max_tiles = 4;
  options.pictures.max_pixels = 40 * 14 * 14;
  options.pictures.buckets = "28x28,42x21,21x42";
  options.max_length = 4000;
  return options;
}

/// Pixels of a field picture as lib/image prepares them.
std::string prepared(const std::string& name, const PackOptions& options) {
  const std::string file = mm::read_file(field_picture(name));
  const auto decoded =
      mm::image::decode(mm::image::as_bytes(file), decode_options_of(options.pictures));
  const auto tiles = mm::image::prepare_tiles(decoded->image, preparation_of(options.pictures));
  return {tiles.rgb.begin(), tiles.rgb.end()};
}

}  // namespace

TEST_CASE("varied pictures: packed, read back and collated, pixels and tokens are lib/image's") {
  for (const std::string geometry : {"anyres", "internvl", "qwen", "bucket"}) {
    for (const std::string storage : {"raw", "webp-lossless"}) {
      CAPTURE(geometry);
      CAPTURE(storage);
      const TempDir dir;
      write_jsonl(dir / "in.jsonl", {{"exif_6.jpg", "a cat"}, {"odd_420.jpg", "a dog and that"}});
      PackOptions options = options_of(geometry, dir / "in.jsonl");
      options.pictures.storage = storage;
      const PackResult result = pack_dataset(options, {.output = dir / "set"});
      REQUIRE(result.manifest.counts.bad == 0);
      CHECK(to_json(result.manifest)["version"] == 2);
      CHECK(verify_dataset(dir / "set", 1).sound());
      const auto set = Dataset::open(dir / "set");
      for (uint64_t row = 0; row < 2; ++row) {
        const auto sample = set->read(row);
        REQUIRE_MESSAGE(sample.ok(), sample.failure().message);
        REQUIRE(sample->grids.size() == 1);
        const std::string name =
            std::string(set->key(row)) == "exif_6.jpg" ? "exif_6.jpg" : "odd_420.jpg";
        CHECK(std::string(sample->pixels.begin(), sample->pixels.end()) == prepared(name, options));
        const int32_t placeholders = static_cast<int32_t>(
            std::count(sample->text.tokens.begin(), sample->text.tokens.end(), 6));
        CHECK(placeholders == sample->grids[0].tokens);
        CHECK(set->sizes()[row].images == sample->grids[0].tiles);
      }
      const auto sizes = set->sizes();
      Pack pack{.samples = {0, 1}};
      for (const SampleSize& size : sizes) {
        pack.tokens += size.tokens;
        pack.images += size.images;
      }
      const Assembled assembled = assemble(*set, sizes, pack);
      CHECK(assembled.bad.empty());
      CHECK(assembled.batch.grids.size() == 2);
      CHECK(contact_sheet(*set, *mm::text::load_tokenizer(options.tokenizer),
                          std::vector<uint64_t>{0, 1})
                .find("picture &times;") != std::string::npos);
    }
  }
}

TEST_CASE("varied pictures: a set of one size keeps the first version's manifest and records") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", good_rows(3));
  const PackResult result = pack_dataset(toy_options(dir / "in.jsonl"), {.output = dir / "set"});
  const mm::Json manifest = to_json(result.manifest);
  CHECK(manifest["version"] == 1);
  CHECK_FALSE(manifest["pictures"].contains("varied"));
  const auto sample = Dataset::open(dir / "set")->read(0);
  REQUIRE(sample.ok());
  CHECK(sample->grids.empty());
}

TEST_CASE("varied pictures: a manifest that hides or invents them spoils every sample") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", {{"odd_420.jpg", "a cat"}});
  pack_dataset(options_of("anyres", dir / "in.jsonl"), {.output = dir / "set"});
  mm::Json json = mm::read_json_file(dir / "set/manifest.json");
  json.erase("checksum");  // of a set that is consistent but wrong
  json["pictures"]["varied"] = false;
  mm::write_file_atomic(dir / "set/manifest.json", json.dump());
  const auto sample = Dataset::open(dir / "set")->read(0);
  REQUIRE_FALSE(sample.ok());
  CHECK(sample.failure().kind == "corrupt");
}

TEST_CASE("C14: the packed sample holds as many placeholders as the model makes features") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", {{"thin.png", "a cat"}});  // 400 x 3
  PackOptions options = options_of("anyres", dir / "in.jsonl");
  pack_dataset(options, {.output = dir / "set"});
  const auto sample = Dataset::open(dir / "set")->read(0);
  REQUIRE(sample.ok());
  // The whole has 4 x 4 patches. No grid shows a row of the picture, so the first is taken; on its
  // 8 x 4 patches the picture fills 3 * 8 / 400 = 0.06 of a row: nothing is left without its
  // padding.
  CHECK(sample->grids[0].columns == 2);
  CHECK(sample->grids[0].tokens == 16);
}
