// Stored latents and captions: how they are held open, and what becomes of damage.
#include "lib/run/encoded_set.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/data/pack_dataset.h"
#include "lib/run/encode_dataset.h"
#include "lib/run/encoded_store.h"
#include "lib/run/memory_estimate.h"
#include "lib/run/validation_loss.h"
#include "lib/run/verify_encoded.h"
#include "tests/run/online_runs.h"
#include "tests/run/stored_units.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::Dataset;
using mm::data::test::contents;
using mm::data::test::TempDir;
namespace fs = std::filesystem;

namespace {

/// A packed set of small pictures in buckets with captions.
fs::path pack(const TempDir& dir, uint32_t rows) {
  mm::data::test::write_jsonl(dir / "in.jsonl", mm::data::test::good_rows(rows));
  mm::data::PackOptions options = mm::data::test::toy_options(dir / "in.jsonl");
  options.pictures.geometry = "buckets";
  options.pictures.buckets = "8x8,12x8,8x12";
  mm::data::pack_dataset(options, {.output = dir / "set", .threads = 2});
  return dir / "set";
}

fs::path bert(const TempDir& dir) {
  return write_encoder(dir / "bert", tiny_bert_config(), toy(), 3);
}

/// Flips the last bit of a row's picture in its shard.
void damage_picture(const Dataset& set, uint64_t row) {
  const mm::data::RowPlace place = set.index().place(row);
  flip_bit(set.directory() / set.manifest().shards[place.shard].file.file,
           static_cast<int64_t>(place.offset + place.bytes - 1));
}

/// While it lives, this process may open no more than `more` files.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(0);
    close(next);
    const rlimit now{static_cast<rlim_t>(next) + more, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

const std::string kUnit0 = unit_name(0), kUnit1 = unit_name(1);

}  // namespace

TEST_CASE("encoded set: more units than the process may open files") {
  const TempDir dir;
  const fs::path set = pack(dir, 2 * 256 + 3);
  encode_dataset({.dataset = set, .encoders = {.text = {bert(dir)}}, .output = dir / "enc"});
  const auto dataset = Dataset::open(set);
  const FewDescriptors few(2);  // one is open while the next is opened
  const auto encoded = EncodedSet::open(dir / "enc", *dataset, 1);
  for (const uint64_t row : {0, 300, 514, 1, 301}) {
    CAPTURE(row);
    CHECK(encoded->pooled(row).numel() == 16);
  }
}

TEST_CASE("encoded set: a flipped byte is named by unit and row, and the unit can be made anew") {
  const TempDir dir;
  const fs::path set = pack(dir, 300), enc = dir / "enc";
  const EncodeOptions options{
      .dataset = set, .encoders = {.vae = tiny_vae(), .text = {bert(dir)}}, .output = enc};
  encode_dataset(options);
  const auto good = contents(enc);
  const auto dataset = Dataset::open(set);
  CHECK(verify_encoded(enc).sound());
  CHECK(verify_encoded(enc).samples == 300);

  const auto file = mm::ckpt::SafetensorsFile::open(enc / kUnit1);
  const auto& pooled = file.at("pooled");
  flip_bit(enc / kUnit1, static_cast<int64_t>(file.data_start() + pooled.end) - 1);
  const auto encoded = EncodedSet::open(enc, *dataset);
  CHECK(encoded->pooled(298).numel() == 16);
  CHECK(encoded->caption(299).size(1) == 16);
  const std::string where = (enc / kUnit1).string() + ": row 299: its pooled vector changed";
  CHECK_THROWS_WITH_AS(encoded->pooled(299), doctest::Contains(where.c_str()), mm::DataError);
  CHECK_THROWS_WITH_AS(encoded->pooled(299), doctest::Contains("call mmshard encode again"),
                       mm::DataError);
  const mm::data::VerifyReport report = verify_encoded(enc);
  CHECK(report.problems == 1);
  CHECK(report.named.at(0).starts_with(kUnit1 + ": content differs"));

  // What the message says to do.
  fs::rename(enc, dir / "enc.partial");
  fs::remove(dir / "enc.partial" / kUnit1);
  const EncodeResult again = encode_dataset(options);
  CHECK(again.made == 1);
  CHECK(again.present == 1);
  CHECK(contents(enc) == good);
}

TEST_CASE("encoded set: a unit in another's place or of other settings is refused") {
  const TempDir dir;
  const fs::path set = pack(dir, 512), text = bert(dir);
  encode_dataset({.dataset = set, .encoders = {.text = {text}}, .output = dir / "fp32"});
  encode_dataset({.dataset = set,
                  .encoders = {.text = {text}},
                  .output = dir / "bf16",
                  .dtype = "bf16",
                  .world = 2});  // the first unit alone
  const auto dataset = Dataset::open(set);
  const auto refused = [&](const char* why) {
    restate_bytes(dir / "fp32");
    CHECK_THROWS_WITH_AS(EncodedSet::open(dir / "fp32", *dataset), doctest::Contains(why),
                         mm::DataError);
    const mm::data::VerifyReport report = verify_encoded(dir / "fp32");
    CHECK(report.problems > 0);
  };
  const fs::path zero = dir / "fp32" / kUnit0, one = dir / "fp32" / kUnit1;
  fs::rename(zero, dir / "aside");
  fs::rename(one, zero);
  fs::rename(dir / "aside", one);
  refused("holds unit");
  fs::copy_file(dir / "bf16.partial" / kUnit0, zero, fs::copy_options::overwrite_existing);
  refused("made with other settings than manifest.json has");
}

TEST_CASE("encoded set: units that lie about sizes or have no token are no crash") {
  const TempDir dir;
  const fs::path set = pack(dir, 20), enc = dir / "enc", unit = enc / kUnit0;
  encode_dataset(
      {.dataset = set, .encoders = {.vae = tiny_vae(), .text = {bert(dir)}}, .output = enc});
  const auto dataset = Dataset::open(set);
  const std::string good = mm::read_file(unit);
  const auto change = [&](const auto& how) {
    mm::write_file_atomic(unit, good);
    rewrite_tensors(unit, [&](Tensors& tensors, mm::ckpt::Metadata&) {
      tensors.erase("sums");
      how(tensors);
    });
    restate_bytes(enc);
  };
  change([](Tensors& t) {
    t["captions"] = at::zeros({0, 16});
    t["captions.ends"].zero_();
  });
  CHECK(EncodedSet::open(enc, *dataset)->caption(3).sizes() == at::IntArrayRef({0, 16}));
  const auto refused = [&](const char* why) {
    CHECK_THROWS_WITH_AS(EncodedSet::open(enc, *dataset), doctest::Contains(why), mm::DataError);
  };
  change([](Tensors& t) {
    at::Tensor& latents = t.at("latents.8x8");
    latents = latents.reshape({latents.size(0), latents.size(1), 1, 4});
  });
  refused("latents.8x8 has latents of 1x4");
  change([](Tensors& t) {
    for (const char* part : {"", ".rows"}) {
      t[std::string("latents.4x16") + part] = t.at(std::string("latents.8x8") + part);
      t.erase(std::string("latents.8x8") + part);
    }
    at::Tensor& latents = t.at("latents.4x16");
    latents = latents.reshape({latents.size(0), latents.size(1), 1, 4});
  });
  refused("whose picture has sides 8x8");
  change([](Tensors& t) { std::swap(t.at("latents.8x8.rows"), t.at("latents.8x12.rows")); });
  CHECK_THROWS_AS(EncodedSet::open(enc, *dataset), mm::DataError);
  change([](Tensors& t) { t["absent"] = at::tensor({int64_t{-1}}, at::kLong); });
  refused("absent has row -1");
  change([](Tensors& t) {
    for (const char* part : {"", ".rows"})
      t[std::string("latents.80x80") + part] =
          t.at(std::string("latents.8x8") + part).narrow(0, 0, 0);
  });
  refused("latents.80x80 has no rows");
}

TEST_CASE("encoded settings: numbers that contradict each other are refused") {
  CHECK(unit_count(UINT64_MAX) == UINT64_MAX / kUnitRows + 1);
  CHECK(unit_count(512) == 2);
  CHECK(unit_count(0) == 0);
  const EncodedSettings settings{.dataset = "d",
                                 .preprocessing = "p",
                                 .vae = "v",
                                 .channels = 4,
                                 .text = "t",
                                 .text_width = 8};
  CHECK(encoded_settings_from(mm::Json::parse(settings_text(settings)), "here").channels == 4);
  for (const char* key : {"vae", "text"}) {
    CAPTURE(key);
    mm::Json json = mm::Json::parse(settings_text(settings));
    json[key] = "";
    CHECK_THROWS_WITH_AS(encoded_settings_from(json, "here"),
                         doctest::Contains("here: 4 channels by VAE"), mm::DataError);
  }
}

TEST_CASE("encode: a caption that overflows the dtype is refused by row, as latents are") {
  const TempDir dir;
  const fs::path set = pack(dir, 3), text = bert(dir);
  rewrite_tensors(text / "model.safetensors", [](Tensors& tensors, mm::ckpt::Metadata&) {
    for (auto& [name, value] : tensors)
      if (name.ends_with("1.output.LayerNorm.bias")) value.fill_(1e5);
  });
  const auto encode = [&](const std::string& dtype) {
    encode_dataset(
        {.dataset = set, .encoders = {.text = {text}}, .output = dir / dtype, .dtype = dtype});
  };
  encode("bf16");
  CHECK_THROWS_WITH_AS(encode("fp16"),
                       doctest::Contains("caption's states are not finite in fp16; use --dtype"),
                       mm::DataError);
}

TEST_CASE("encode: a row that cannot be read is absent, trained with weight 0 and in the ledger") {
  TempDir dir;
  tiny_diffusion_recipe(dir.path());
  const auto dataset = Dataset::open(dir / "pictures");
  damage_picture(*dataset, 7);
  std::vector<uint64_t> named;
  EncodeOptions options{.dataset = dir / "pictures",
                        .encoders = {.vae = tiny_vae(), .text = {bert(dir)}},
                        .output = dir / "enc"};
  options.on_absent = [&](const AbsentRow& absent) { named.push_back(absent.row); };
  CHECK_THROWS_WITH_AS(encode_dataset(options), doctest::Contains("1 of 21 rows could not be read"),
                       mm::DataError);
  fs::remove_all(dir / "enc.partial");
  named.clear();
  options.bad_limit = 0.1;
  CHECK(encode_dataset(options).absent == 1);
  CHECK(named == std::vector<uint64_t>{7});
  CHECK(encode_dataset(options).absent == 1);
  CHECK(verify_encoded(dir / "enc").sound());
  const auto encoded = EncodedSet::open(dir / "enc", *dataset);
  CHECK(encoded->absent_rows() == 1);
  CHECK(!encoded->has(7));
  CHECK(encoded->latents(8, {}).size(0) == 4);

  const std::vector<std::string> keys = {
      "stage.0.encoded=" + (dir / "enc").string(), "model.transformer.patch=1",
      "stage.0.train=[\"transformer\"]", "stage.0.lr={ transformer = 3e-3 }", "stage.0.steps=8"};
  // 1 of 21 is allowed, and met in every epoch.
  const std::vector<std::string> allowed =
      joined(keys, {"loader.bad_sample_limit=0.05", "validation.every_steps=8",
                    "validation.data=" + (dir / "pictures").string(),
                    "validation.encoded=" + (dir / "enc").string()});
  const Outcome run = run_with(dir, "run", allowed);
  const std::string ledger = mm::read_file(dir / "run/ledger/bad-00000.jsonl");
  const size_t first = ledger.find("\"sample\":7");
  REQUIRE(first != std::string::npos);
  CHECK(ledger.find("\"sample\":7", first + 1) != std::string::npos);
  CHECK(ledger.find("\"kind\":\"absent\"") != std::string::npos);
  CHECK_THROWS_WITH_AS(run_with(dir, "strict", keys),
                       doctest::Contains("1 of 21 rows could not be read when they were encoded"),
                       mm::Error);
  // The held-out loss leaves it out.
  const TrainedDiffusion trained = open_trained_diffusion(dir / "run");
  const ValidationLoss loss =
      validation_loss(trained, *trained.params, *dataset, {.encoded = encoded.get()});
  CHECK(loss.samples == 20);
  CHECK(run.records.back().validation_loss == doctest::Approx(loss.mean()));
}

TEST_CASE("stored latents: no picture is read, decoded or missed") {
  TempDir dir;
  tiny_diffusion_recipe(dir.path());
  const auto dataset = Dataset::open(dir / "pictures");
  encode_dataset(
      {.dataset = dir / "pictures", .encoders = {.vae = tiny_vae()}, .output = dir / "latents"});
  const std::vector<std::string> keys = {"stage.0.encoded=" + (dir / "latents").string(),
                                         "stage.0.steps=3", "model.transformer.patch=1"};
  const Outcome before = run_with(dir, "before", keys);
  for (uint64_t row = 0; row < dataset->rows(); ++row) damage_picture(*dataset, row);
  const Outcome after = run_with(dir, "after", keys);
  check_same_losses(after, before, 1e-12);
  CHECK(!fs::exists(dir / "after/ledger/bad-00000.jsonl"));

  // A caption that is another one than was encoded.
  rewrite_tensors(dir / "latents" / kUnit0, [](Tensors& tensors, mm::ckpt::Metadata&) {
    tensors.at("sums")[5][static_cast<int64_t>(UnitPart::kTokens)] = 1;
  });
  const auto encoded = EncodedSet::open(dir / "latents", *dataset);
  const EncodedStore store(*dataset, *encoded);
  CHECK(!store.gives_pixels());
  CHECK(store.read(4).ok());
  const auto other = store.read(5);
  REQUIRE(!other.ok());
  CHECK(other.failure().message.find("its caption is not the one that was encoded") !=
        std::string::npos);
}

TEST_CASE("a run goes on with what was encoded in the same way only") {
  TempDir dir;
  tiny_diffusion_recipe(dir.path());
  const auto encode = [&](const std::string& dtype, bool mean_only) {
    fs::remove_all(dir / "enc");
    encode_dataset({.dataset = dir / "pictures",
                    .encoders = {.vae = tiny_vae()},
                    .output = dir / "enc",
                    .mean_only = mean_only,
                    .dtype = dtype});
  };
  encode("fp32", false);
  const std::vector<std::string> keys = {"stage.0.encoded=" + (dir / "enc").string(),
                                         "stage.0.steps=1", "model.transformer.patch=1"};
  run_with(dir, "run", keys);
  run_with(dir, "run", keys);
  encode("bf16", false);
  CHECK_THROWS_WITH_AS(run_with(dir, "run", keys),
                       doctest::Contains("stage 0 is stored in bf16 as means and deviations"),
                       mm::Error);
  encode("fp32", true);
  CHECK_THROWS_WITH_AS(run_with(dir, "run", keys), doctest::Contains("as means alone"), mm::Error);
  // A run of before the record goes on, and has it from then on.
  mm::Json record = mm::read_json_file(dir / "run/encoders.json");
  CHECK(record.at("stages").at(0).at("dtype") == "fp32");
  record.erase("stages");
  mm::write_file_atomic(dir / "run/encoders.json", record.dump());
  run_with(dir, "run", keys);
  CHECK(mm::read_json_file(dir / "run/encoders.json")["stages"][0]["mean_only"] == true);
}

TEST_CASE("frozen encoders are loaded before the first step, not in it") {
  TempDir dir;
  const fs::path t5 = write_encoder(dir / "t5", tiny_t5_config(12), toy(), 5);
  const Recipe recipe =
      tiny_diffusion_recipe(dir.path(), joined(online_keys({t5}), {"stage.0.steps=1"}));
  TrainOptions options;
  options.fault_hook = [&](std::string_view moment) {
    if (moment == "step") fs::remove_all(t5);
  };
  CHECK(run_threads(recipe, dir / "run", 1, options).records.size() == 1);
}

TEST_CASE("memory estimate: frozen encoders that work on the way take memory, in parts less") {
  TempDir dir;
  const fs::path t5 = write_encoder(dir / "t5", tiny_t5_config(12), toy(), 5);
  tiny_diffusion_recipe(dir.path());
  encode_dataset({.dataset = dir / "pictures",
                  .encoders = {.vae = tiny_vae(), .text = {t5}},
                  .output = dir / "enc"});
  const auto estimate = [&](const std::vector<std::string>& more) {
    const Recipe recipe = tiny_diffusion_recipe(dir.path(), joined(online_keys({t5}), more));
    const auto set = Dataset::open(dir / "pictures");
    const auto family = make_family(recipe, {set->manifest()});
    const mm::model::Model model = family->build();
    return stage_memory({recipe, 0, model, *family, *set}).estimate;
  };
  const MemoryEstimate online = estimate({}), parts = estimate({"frozen.pictures_at_once=1"});
  CHECK(online.encoding > parts.encoding);
  CHECK(parts.encoding > 0);
  CHECK(estimate({"stage.0.encoded=" + (dir / "enc").string()}).encoding == 0);
  const std::string latents = "stage.0.encoded=" + (dir / "latents").string();
  encode_dataset(
      {.dataset = dir / "pictures", .encoders = {.vae = tiny_vae()}, .output = dir / "latents"});
  CHECK(estimate({latents}).encoding > estimate({latents, "frozen.captions_at_once=1"}).encoding);
  // What the held-out set's encoded set lacks is encoded by the same models.
  const auto frozen = [&](const char* held_out) {
    const Recipe recipe = tiny_diffusion_recipe(
        dir.path(), joined(online_keys({t5}),
                           {"stage.0.encoded=" + (dir / "enc").string(), "validation.every_steps=1",
                            "validation.data=" + (dir / "pictures").string(),
                            "validation.encoded=" + (dir / held_out).string()}));
    const auto set = Dataset::open(dir / "pictures");
    return make_family(recipe, {set->manifest()})->frozen_elements();
  };
  CHECK(frozen("enc") == 0);
  CHECK(frozen("latents") > 0);
  MemoryEstimate large{.activations = 5e9, .encoding = 8e9};
  CHECK(large.total() == 8e9);
  large.encodes_ahead = true;
  CHECK(large.total() == 13e9);
  CHECK(memory_shortage(large, 7e9, "draw").find("frozen encoders before the forward 7.45") !=
        std::string::npos);
}
