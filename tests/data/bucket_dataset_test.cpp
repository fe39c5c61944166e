#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "lib/base/error.h"
#include "lib/data/bucketing.h"
#include "lib/data/contact_sheet.h"
#include "lib/data/dataset.h"
#include "lib/data/loader.h"
#include "lib/data/verify_dataset.h"
#include "tests/data/bucket_sets.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

PackOptions bucket_options(const TempDir& dir, uint32_t rows) {
  write_jsonl(dir / "in.jsonl", good_rows(rows));
  PackOptions options = toy_options(dir / "in.jsonl");
  options.pictures.geometry = "buckets";
  options.pictures.buckets = "8x8,12x6,6x12,16x16";
  return options;
}

/// A packed set of `rows` toy rows, opened.
std::unique_ptr<Dataset> packed(const TempDir& dir, uint32_t rows) {
  pack_dataset(bucket_options(dir, rows), {.output = dir / "set", .threads = 2});
  return Dataset::open(dir / "set");
}

LoaderOptions loader_options(int rank, int ranks, uint64_t start = 0) {
  return {.plan = {.seed = 5,
                   .packs_per_step = 4,
                   .packing = Packing::kBuckets,
                   .batch_pixels = 4 * 8 * 12},
          .rank = rank,
          .ranks = ranks,
          .start_step = start,
          .threads = 2};
}

void check_batch(const MicroBatch& batch) {
  const auto pictures = static_cast<size_t>(batch.images);
  CHECK(batch.pixels.size() == pictures * 3 * static_cast<size_t>(batch.height * batch.width));
  CHECK(batch.cu_seqlens.size() == pictures + 1);
  CHECK(batch.sample_ids.size() == pictures);
  CHECK(batch.grids.size() == pictures);
  CHECK(batch.cu_seqlens.back() == static_cast<int32_t>(batch.tokens.size()));
  CHECK(batch.image_token_index.empty());
  CHECK(std::ranges::all_of(batch.targets, [](int32_t t) { return t == kIgnore; }));
  const auto fillers = static_cast<size_t>(std::ranges::count(batch.sample_ids, kFillerId));
  CHECK(batch.target_count == static_cast<int64_t>(pictures - fillers));
  CHECK(batch.weights.size() == (fillers > 0 ? pictures : 0));
  for (size_t i = 0; i < batch.weights.size(); ++i)
    CHECK(batch.weights[i] == (batch.sample_ids[i] == kFillerId ? 0.0F : 1.0F));
}

/// Ids, pixels and tokens of a rank's next `steps` steps.
struct Stream {
  std::vector<uint64_t> ids;
  std::vector<uint8_t> pixels;
  std::vector<int32_t> tokens;
  bool operator==(const Stream&) const = default;
};

Stream take(Loader& loader, size_t steps) {
  Stream stream;
  for (size_t i = 0; i < steps; ++i) {
    for (const MicroBatch& batch : loader.next().micro_batches) {
      stream.ids.insert(stream.ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
      stream.pixels.insert(stream.pixels.end(), batch.pixels.begin(), batch.pixels.end());
      stream.tokens.insert(stream.tokens.end(), batch.tokens.begin(), batch.tokens.end());
    }
  }
  return stream;
}

}  // namespace

TEST_CASE("bucketed set: packs, opens, verifies; each picture has the shape of its bucket") {
  const TempDir dir;
  const auto set = packed(dir, 70);
  CHECK(set->buckets() == std::vector<BucketShape>{{8, 8}, {6, 12}, {12, 6}, {16, 16}});
  CHECK(set->manifest().counts.targets == 70);
  CHECK(set->pictures().bucketed);
  const auto sizes = set->sizes();
  for (uint32_t row = 0; row < set->rows(); ++row) {
    const auto sample = set->read(row);
    REQUIRE(sample);
    CHECK(sample->pixels.size() == 3 * static_cast<size_t>(sizes[row].bucket.pixels()));
    CHECK(sample->grids.at(0).width == sizes[row].bucket.width);
    CHECK(sample->grids.at(0).original_width > 0);
    CHECK(!sample->text.tokens.empty());
    CHECK(sample->text.trainable.empty());
    if (row > 0) CHECK(sizes[row].bucket.pixels() >= sizes[row - 1].bucket.pixels());
  }
  CHECK(verify_dataset(dir / "set", 2).sound());
  const Bucketing bucketing = bucketing_from_json(set->manifest().bucketing, "manifest");
  CHECK(bucketing.pictures.size() == 4);
  CHECK(bucketing.pictures[0] + bucketing.pictures[1] + bucketing.pictures[2] +
            bucketing.pictures[3] ==
        70);
  const auto tokenizer = mm::text::load_tokenizer(dir / "set/tokenizer.json");
  const std::string sheet = contact_sheet(*set, *tokenizer, std::vector<uint64_t>{0, 69});
  CHECK(sheet.find("data:image/png") != std::string::npos);
}

TEST_CASE("bucketed set: captions are plain ids without a template; long ones lose their end") {
  const TempDir dir;
  PackOptions options = bucket_options(dir, 30);
  options.max_length = 2;
  const PackResult result = pack_dataset(options, {.output = dir / "set", .threads = 1});
  CHECK(result.manifest.counts.longest <= 2);
  CHECK(result.manifest.bucketing["cut_captions"] > 0);
  const auto tokenizer = mm::text::load_tokenizer(toy_tokenizer());
  const auto set = Dataset::open(dir / "set");
  for (uint32_t row = 0; row < set->rows(); ++row) {
    const auto source_row = static_cast<uint32_t>(set->index().row(row).source_row);
    CHECK(set->read(row)->text.tokens == tokenizer->encode_whole(toy_caption(source_row), 2));
  }
}

TEST_CASE("bucketed set: a record of two pictures is refused by name") {
  const TempDir dir;
  PackOptions options = bucket_options(dir, 3);
  mm::write_file_atomic(dir / "in.jsonl",
                        "{\"image\": [\"rgba.png\", \"thin.png\"], \"text\": \"a cat\"}\n"
                        "{\"image\": \"rgba.png\", \"text\": \"a cat\"}\n");
  const PackResult result =
      pack_dataset(options, {.output = dir / "set", .threads = 1, .bad_limit = 0.6});
  CHECK(result.manifest.counts.bad == 1);
  CHECK(mm::read_file(dir / "set/ledger.jsonl").find("image_count") != std::string::npos);
}

TEST_CASE("bucketed set: options that cannot be are refused") {
  const TempDir dir;
  PackOptions options = bucket_options(dir, 3);
  const auto refuse = [&](auto change) {
    PackOptions changed = options;
    change(changed);
    CHECK_THROWS_AS(check(changed), mm::UsageError);
  };
  refuse([](PackOptions& o) { o.pictures.buckets = ""; });
  refuse([](PackOptions& o) { o.pictures.buckets = "8x8,sd15"; });
  refuse([](PackOptions& o) { o.pictures.buckets = "8x0"; });
  refuse([](PackOptions& o) { o.pictures.buckets = "99999x8"; });
  refuse([](PackOptions& o) { o.pictures.bucket_area = "63x63"; });
  refuse([](PackOptions& o) { o.pictures.bucket_area = "some"; });
  refuse([](PackOptions& o) { o.tokenizer.clear(); });
  refuse([](PackOptions& o) { o.source.labels = "label"; });
  options.pictures.bucket_area = "64x64";
  options.pictures.bucket_multiple = 16;
  CHECK_NOTHROW(check(options));
}

TEST_CASE("bucketed set: a manifest with impossible buckets is refused") {
  const TempDir dir;
  const auto set = packed(dir, 10);
  const mm::Json good = to_json(set->manifest());
  for (const char* bad : {"[]", "[[8]]", "[[8, 0]]", "[[8, 70000]]", "[[8, 8], [8, 8]]", "7",
                          "[[8, -8]]", "[[\"8\", 8]]"}) {
    mm::Json json = good;
    json.erase("checksum");
    json["pictures"]["buckets"] = mm::parse_json(bad, "bad");
    CHECK_THROWS_AS(manifest_from_json(json, "m"), mm::DataError);
  }
  // Rows in no bucket of the table.
  mm::Json json = good;
  json.erase("checksum");
  json["pictures"]["buckets"] = mm::parse_json("[[9, 9]]", "other");
  mm::write_file_atomic(dir / "set/manifest.json", json.dump());
  CHECK_THROWS_WITH_AS(Dataset::open(dir / "set"), doctest::Contains("impossible"), mm::DataError);
}

TEST_CASE(
    "loader over a bucketed set: one shape a batch, fillers weigh nothing, each picture once") {
  const TempDir dir;
  const auto set = packed(dir, 75);
  for (const int ranks : {1, 2, 4}) {
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int r = 0; r < ranks; ++r)
      loaders.push_back(std::make_unique<Loader>(*set, loader_options(r, ranks)));
    std::multiset<uint64_t> seen;
    const PlanTable plan = plan_epoch_table(set->sizes(), loader_options(0, 1).plan, 0);
    for (uint64_t s = 0; s < plan.view().steps(); ++s) {
      for (auto& loader : loaders) {
        const LoaderStep step = loader->next();
        CHECK(step.micro_batches.size() == static_cast<size_t>(4 / ranks));
        for (const MicroBatch& batch : step.micro_batches) {
          check_batch(batch);
          for (const uint64_t id : batch.sample_ids)
            if (id != kFillerId) seen.insert(id);
        }
      }
    }
    CHECK(seen.size() == 75);
    CHECK(std::set<uint64_t>(seen.begin(), seen.end()).size() == 75);
  }
}

TEST_CASE("C24: one shard or several on 2 ranks give equal steps, each picture once") {
  for (const uint64_t shard_bytes : {uint64_t{1} << 20, uint64_t{6000}}) {
    const TempDir dir;
    PackOptions options = bucket_options(dir, 45);
    options.shard_bytes = shard_bytes;
    const PackResult packed = pack_dataset(options, {.output = dir / "set", .threads = 1});
    CHECK((packed.manifest.shards.size() == 1) == (shard_bytes > 6000));
    const auto set = Dataset::open(dir / "set");
    const uint64_t steps =
        plan_epoch_table(set->sizes(), loader_options(0, 1).plan, 0).view().steps();
    std::multiset<uint64_t> seen;
    for (const int rank : {0, 1}) {
      Loader loader(*set, loader_options(rank, 2));
      const Stream stream = take(loader, steps);
      CHECK(loader.next().plan.position.epoch == 1);
      seen.insert(stream.ids.begin(), stream.ids.end());
    }
    seen.erase(kFillerId);
    CHECK(seen.size() == 45);
    CHECK(std::set<uint64_t>(seen.begin(), seen.end()).size() == 45);
  }
}

TEST_CASE("C25: a loader of buckets resumed at step k yields what the unbroken one yields") {
  const TempDir dir;
  const auto set = packed(dir, 75);
  const uint64_t steps =
      2 * plan_epoch_table(set->sizes(), loader_options(0, 1).plan, 0).view().steps();
  for (uint64_t k = 0; k < steps; k += 3) {
    Loader whole(*set, loader_options(1, 2));
    take(whole, k);
    Loader resumed(*set, loader_options(1, 2, k));
    CHECK(take(whole, steps - k) == take(resumed, steps - k));
  }
}

TEST_CASE("loader over a bucketed set: a damaged picture is black, of its bucket, weight 0") {
  const TempDir dir;
  { packed(dir, 40); }
  const auto row = Dataset::open(dir / "set")->index().row(7);
  const auto shard = dir / "set" / fmt::format("shard-{:05}.mms", row.shard);
  std::string bytes = mm::read_file(shard);
  bytes[row.offset + row.bytes - 1] ^= 1;
  mm::write_file_atomic(shard, bytes);
  const auto set = Dataset::open(dir / "set");
  const auto sizes = set->sizes();
  Pack pack = make_pack(sizes, std::vector<uint32_t>{7});
  pack.fillers = 2;
  const Assembled made = assemble(*set, sizes, pack);
  REQUIRE(made.bad.size() == 1);
  CHECK(made.bad[0].sample_id == 7);
  CHECK(made.batch.weights == std::vector<float>{0, 0, 0});
  CHECK(made.batch.sample_ids == std::vector<uint64_t>{7, kFillerId, kFillerId});
  CHECK(made.batch.target_count == 0);
  CHECK(made.batch.height == sizes[7].bucket.height);
  CHECK(std::ranges::all_of(made.batch.pixels, [](uint8_t p) { return p == 0; }));
}

TEST_CASE("assemble: pictures of a bucket are flipped one by one") {
  const TempDir dir;
  const auto set = packed(dir, 40);
  const auto sizes = set->sizes();
  const Pack pack = make_pack(sizes, std::vector<uint32_t>{0, 1});
  const MicroBatch plain = assemble(*set, sizes, pack).batch;
  const MicroBatch flipped =
      assemble(*set, sizes, pack, {.augmentation = {.seed = 1, .flip_probability = 1}}).batch;
  REQUIRE(plain.pixels.size() == flipped.pixels.size());
  const auto width = static_cast<size_t>(plain.width), rows = plain.pixels.size() / 3 / width;
  for (size_t y = 0; y < rows; ++y) {
    for (size_t x = 0; x < width; ++x) {
      const size_t a = 3 * (y * width + x), b = 3 * (y * width + width - 1 - x);
      CHECK(std::memcmp(&plain.pixels[a], &flipped.pixels[b], 3) == 0);
    }
  }
}
