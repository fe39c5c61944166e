#include "lib/run/encode_dataset.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/pack_dataset.h"
#include "lib/model/vae_load.h"
#include "lib/run/encoded_set.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"
#include "tests/run/stored_units.h"
#include "tests/run/tiny_encoders.h"

using namespace mm::run;
using mm::data::Dataset;
using mm::data::test::contents;
using mm::data::test::TempDir;
namespace fs = std::filesystem;

namespace {

const fs::path kVae = fs::path(MM_TEST_DATA) / "oracles/vae";
constexpr uint32_t kRows = 300;  // two units

/// A packed set of pictures in buckets with captions.
fs::path pack(const TempDir& dir, uint32_t rows = kRows) {
  mm::data::test::write_jsonl(dir / "in.jsonl", mm::data::test::good_rows(rows));
  mm::data::PackOptions options = mm::data::test::toy_options(dir / "in.jsonl");
  options.pictures.geometry = "buckets";
  options.pictures.buckets = "8x8,12x4,4x12";
  mm::data::pack_dataset(options, {.output = dir / "set", .threads = 2});
  return dir / "set";
}

/// A random BERT of width 16 for the set's tokenizer.
fs::path text_encoder(const TempDir& dir, const fs::path& set) {
  const auto manifest = mm::data::read_manifest(set);
  return test::write_encoder(dir / "bert", test::tiny_bert_config(),
                             set / manifest.tokenizer.file.file, 3);
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).norm().item<double>() / b.norm().item<double>();
}

}  // namespace

TEST_CASE("C52: encode: latents from the set equal those made of its pictures, scaled once") {
  const TempDir dir;
  const fs::path set = pack(dir), text = text_encoder(dir, set);
  const EncodeResult done = encode_dataset({.dataset = set,
                                            .encoders = {.vae = kVae, .text = {text}},
                                            .output = dir / "enc",
                                            .threads = 2});
  CHECK(done.complete);
  CHECK(done.made == 2);
  const auto dataset = Dataset::open(set);
  const auto encoded = EncodedSet::open(dir / "enc", *dataset);
  const auto loaded = mm::model::load_vae(kVae);
  const mm::model::Vae vae(loaded.config, loaded.values, at::kFloat);
  const mm::model::LoadedTextEncoder encoder(text, at::kFloat);
  const at::NoGradGuard no_grad;
  for (const uint64_t row : {uint64_t{0}, uint64_t{255}, uint64_t{256}, uint64_t{kRows - 1}}) {
    CAPTURE(row);
    auto sample = dataset->read(row);
    REQUIRE(sample.ok());
    const auto& grid = sample->grids.at(0);
    const at::Tensor pixels = at::tensor(sample->pixels, at::kByte)
                                  .view({1, grid.height, grid.width, 3})
                                  .permute({0, 3, 1, 2})
                                  .to(at::kFloat);
    const auto q = mm::model::posterior_of(vae.moments(pixels / 127.5 - 1));
    at::manual_seed(9);
    const at::Tensor noise = at::randn_like(q.mean);
    CHECK(distance(encoded->latents(row, noise[0]), q.sample(noise)[0] * 0.18215) < 1e-5);
    CHECK(distance(encoded->latents(row, {}), q.mean[0] * 0.18215) < 1e-5);
    const std::vector<int64_t> ids(sample->text.tokens.begin(), sample->text.tokens.end());
    const auto want = encoder.encode(mm::model::pad_text({ids}, {}));
    CHECK(distance(encoded->caption(row), want.hidden[0]) < 1e-5);
    CHECK(distance(encoded->pooled(row), want.pooled[0]) < 1e-5);
  }
}

TEST_CASE("encode: equal bytes for any number of ranks and threads, and after a kill") {
  const TempDir dir;
  const fs::path set = pack(dir);
  const auto encode = [&](const char* out, int rank, int world, int threads) {
    return encode_dataset({.dataset = set,
                           .encoders = {.vae = kVae},
                           .output = dir / out,
                           .dtype = "bf16",
                           .rank = rank,
                           .world = world,
                           .threads = threads});
  };
  encode("one", 0, 1, 1);
  const EncodeResult first = encode("two", 1, 2, 2);
  CHECK(!first.complete);
  CHECK(first.made == 1);
  // A rank that was killed left its work aside; another count of ranks takes it up.
  const EncodeResult second = encode("two", 0, 1, 2);
  CHECK(second.complete);
  CHECK(second.present == 1);
  CHECK(second.made == 1);
  CHECK(contents(dir / "one") == contents(dir / "two"));
  CHECK(encode("two", 0, 1, 1).present == 2);
  CHECK(!fs::exists(dir / "two.partial"));
}

TEST_CASE("encode: another model, set, tokenizer or setting is refused by name") {
  const TempDir dir;
  const fs::path set = pack(dir, 20);
  const auto encode = [&](const fs::path& out, const std::string& dtype) {
    return encode_dataset(
        {.dataset = set, .encoders = {.vae = kVae}, .output = out, .dtype = dtype});
  };
  encode(dir / "enc", "fp16");
  CHECK_THROWS_WITH_AS(encode(dir / "enc", "fp32"), doctest::Contains("other settings"),
                       mm::UsageError);
  CHECK_THROWS_AS(encode(dir / "x", "fp8"), mm::UsageError);
  CHECK_THROWS_AS(encode_dataset({.dataset = set, .output = dir / "x"}), mm::UsageError);
  const auto dataset = Dataset::open(set);
  const auto encoded = EncodedSet::open(dir / "enc", *dataset);
  encoded->require_vae(model_hash(kVae));
  CHECK_THROWS_WITH_AS(encoded->require_vae("0"), doctest::Contains("stored by the VAE"),
                       mm::DataError);
  CHECK_THROWS_WITH_AS(encoded->require_text("0", {}), doctest::Contains("none"), mm::DataError);
  const TempDir other;
  const auto another = Dataset::open(pack(other, 21));
  CHECK_THROWS_WITH_AS(EncodedSet::open(dir / "enc", *another),
                       doctest::Contains("made of another data set"), mm::DataError);
  const fs::path text = text_encoder(dir, set);
  mm::write_file_atomic(text / "tokenizer.json", "x");
  CHECK_THROWS_WITH_AS(
      encode_dataset({.dataset = set, .encoders = {.text = {text}}, .output = dir / "t"}),
      doctest::Contains("none of its tokenizer files"), mm::DataError);
}

TEST_CASE("encode: how captions were written is recorded; sets of before the record go on") {
  const TempDir dir;
  const fs::path set = pack(dir, 20), tokenizer = set / "tokenizer.json";
  const fs::path clip =
      test::write_encoder(dir / "clip", test::tiny_clip_config(8, 0), tokenizer, 3);
  const auto encode = [&] {
    return encode_dataset(
        {.dataset = set, .encoders = {.text = {clip}}, .output = dir / "enc", .threads = 1});
  };
  CHECK(encode().complete);
  const auto dataset = Dataset::open(set);
  const auto writing = [&] { return open_caption_tokenizers({clip}, 0, tokenizer).writing; };
  const std::string hash = model_hash(clip);
  EncodedSet::open(dir / "enc", *dataset)->require_text(hash, writing());
  const EncodedSettings settings = read_encoded_manifest(dir / "enc").settings;
  CHECK((settings.text_writing == std::vector<CaptionWriting>{{.length = 12, .pad_id = 0}}));
  CHECK((settings.text_shares ==
         std::vector<CaptionShare>{{.rows = 12, .width = 8, .pooled_width = 8}}));

  // Another pad_token: another set, and no more of it.
  const std::string piece = mm::text::load_tokenizer(tokenizer)->id_to_piece(10);
  mm::write_file_atomic(clip / "tokenizer_config.json", mm::Json{{"pad_token", piece}}.dump());
  CHECK_THROWS_WITH_AS(
      EncodedSet::open(dir / "enc", *dataset)->require_text(hash, writing()),
      doctest::Contains("text encoder 1 fills captions up with id 10, before with 0"),
      mm::DataError);
  CHECK_THROWS_WITH_AS(encode(), doctest::Contains("other settings"), mm::UsageError);

  mm::Json manifest = mm::read_json_file(dir / "enc/manifest.json");
  const mm::Json good = manifest;
  manifest["settings"]["text_shares"][0][3] = 9;
  mm::write_file_atomic(dir / "enc/manifest.json", manifest.dump());
  CHECK_THROWS_WITH_AS(EncodedSet::open(dir / "enc", *dataset),
                       doctest::Contains("does not divide captions of width 8"), mm::DataError);
  manifest = good;
  manifest["settings"]["text_writing"][0]["pad_id"] = 5;
  mm::write_file_atomic(dir / "enc/manifest.json", manifest.dump());
  CHECK_THROWS_WITH_AS(EncodedSet::open(dir / "enc", *dataset),
                       doctest::Contains("prepares pictures or texts otherwise"), mm::DataError);

  // As an older mmshard wrote it: read, and whole.
  manifest = good;
  for (const char* key : {"text_shares", "text_writing"}) manifest["settings"].erase(key);
  manifest["settings"]["preprocessing"] = preprocessing_hash(dataset->manifest(), {});
  mm::write_file_atomic(dir / "enc/manifest.json", manifest.dump());
  const std::string old_hash = settings_hash(read_encoded_manifest(dir / "enc").settings);
  test::rewrite_tensors(dir / "enc" / unit_name(0), [&](auto& tensors, auto& metadata) {
    tensors.erase("sums");
    metadata = {{kSettingsKey, old_hash}};
  });
  test::restate_bytes(dir / "enc");
  EncodedSet::open(dir / "enc", *dataset)->require_text(hash, writing());
  CHECK(encode().present == 1);
}

TEST_CASE("encoded set: a cut unit and a manifest that says otherwise are refused") {
  const TempDir dir;
  const fs::path set = pack(dir, 20);
  encode_dataset(
      {.dataset = set, .encoders = {.vae = kVae}, .output = dir / "enc", .mean_only = true});
  const auto dataset = Dataset::open(set);
  const mm::Json good = mm::read_json_file(dir / "enc/manifest.json");
  const auto refused = [&](const char* key, const mm::Json& value, const char* part) {
    mm::Json json = good;
    json["settings"][key] = value;
    mm::write_file_atomic(dir / "enc/manifest.json", json.dump());
    CHECK_THROWS_WITH_AS(EncodedSet::open(dir / "enc", *dataset), doctest::Contains(part),
                         mm::DataError);
  };
  refused("channels", 3, "4 channels, expected 3");
  refused("mean_only", false, "4 channels, expected 8");
  refused("scaled", true, "scaled already");
  refused("preprocessing", "0", "prepares pictures or texts otherwise");
  refused("rows", 600, "1 units for 600 rows");
  mm::write_file_atomic(dir / "enc/manifest.json", good.dump());
  fs::resize_file(dir / "enc" / unit_name(0), 200);
  CHECK_THROWS_AS(EncodedSet::open(dir / "enc", *dataset), mm::DataError);
}
