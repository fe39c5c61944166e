#include "lib/data/dataset.h"

#include <doctest/doctest.h>

#include <functional>

#include "lib/base/error.h"
#include "lib/data/verify_dataset.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

/// A tiny set of 20 samples in 3 shards.
struct Fixture {
  TempDir dir;
  fs::path set = dir / "set";
  Fixture() { write_tiny_dataset(set, 20); }

  void flip(const std::string& name, size_t at) const {
    std::string content = mm::read_file(set / name);
    content.at(at) = static_cast<char>(content[at] ^ 0x40);
    mm::write_file_atomic(set / name, content);
  }
  void edit_manifest(const std::function<void(mm::Json&)>& edit) const {
    mm::Json json = mm::read_json_file(set / "manifest.json");
    json.erase("checksum");  // of a set that is consistent but wrong
    edit(json);
    mm::write_file_atomic(set / "manifest.json", json.dump());
  }
  void refuses_to_open(const char* words) const {
    CHECK_THROWS_WITH_AS(Dataset::open(set), doctest::Contains(words), mm::DataError);
    bool sound = false;
    try {
      sound = verify_dataset(set, 1).sound();
    } catch (const mm::DataError&) {
      sound = false;
    }
    CHECK(!sound);
  }
};

}  // namespace

TEST_CASE("dataset: all samples are read back, sizes and layout are the manifest's") {
  const Fixture f;
  const auto set = Dataset::open(f.set);
  REQUIRE(set->rows() == 20);
  CHECK(set->pictures().height == kSide);
  CHECK(set->pictures().patches == kPatches);
  CHECK(set->pictures().image_token_id == kImageToken);
  CHECK(set->key(7) == "sample 7");
  CHECK(set->fingerprint().size() == 32);
  for (uint32_t i = 0; i < 20; ++i) {
    const auto sample = set->read(i);
    REQUIRE(sample.ok());
    CHECK(sample->text == tiny_sample(i).text);
    CHECK(sample->pixels == tiny_sample(i).pixels);
  }
  const VerifyReport report = verify_dataset(f.set, 2);
  CHECK(report.sound());
  CHECK(report.samples == 20);
  CHECK(report.files == 6);
}

TEST_CASE("dataset: a flipped bit in a shard spoils one sample, which is named, verify finds it") {
  const Fixture f;
  f.flip("shard-00001.mms", 60);
  const auto set = Dataset::open(f.set);
  int bad = 0;
  for (uint32_t i = 0; i < 20; ++i) {
    const auto sample = set->read(i);
    if (sample) continue;
    ++bad;
    CHECK(sample.failure().message.find("sample 8 (sample 8)") != std::string::npos);
    CHECK(sample.failure().message.find("shard-00001.mms") != std::string::npos);
  }
  CHECK(bad == 1);
  const VerifyReport report = verify_dataset(f.set, 2);
  CHECK(report.problems == 2);
  CHECK(report.named[0].starts_with("shard-00001.mms: content differs"));
  CHECK(report.named[1].find("checksum") != std::string::npos);
}

TEST_CASE("dataset: cut, grown, missing shards are refused at opening") {
  SUBCASE("cut") {
    const Fixture f;
    fs::resize_file(f.set / "shard-00002.mms", 100);
    f.refuses_to_open("100 bytes, the manifest says");
  }
  SUBCASE("grown") {
    const Fixture f;
    fs::resize_file(f.set / "shard-00000.mms", fs::file_size(f.set / "shard-00000.mms") + 1);
    f.refuses_to_open("the manifest says");
  }
  SUBCASE("missing") {
    const Fixture f;
    fs::remove(f.set / "shard-00000.mms");
    f.refuses_to_open("shard is missing");
  }
}

TEST_CASE("dataset: swapped shards are refused or every sample of them is") {
  const TempDir dir;
  const auto set = dir / "set";
  write_tiny_dataset(set, 20, 10);
  fs::rename(set / "shard-00000.mms", set / "x");
  fs::rename(set / "shard-00001.mms", set / "shard-00000.mms");
  fs::rename(set / "x", set / "shard-00001.mms");
  CHECK(!verify_dataset(set, 1).sound());
  try {
    const auto opened = Dataset::open(set);
    for (uint32_t i = 0; i < 20; ++i) CHECK(!opened->read(i).ok());
  } catch (const mm::DataError& error) {
    CHECK(std::string(error.what()).find("bytes") != std::string::npos);
  }
}

TEST_CASE("dataset: a damaged index, or that of another set, is refused") {
  const Fixture f;
  SUBCASE("flipped") {
    f.flip("index.mmi", 700);
    CHECK_THROWS_AS(Dataset::open(f.set), mm::DataError);
  }
  SUBCASE("other") {
    write_tiny_dataset(f.dir / "other", 21);
    fs::copy_file(f.dir / "other" / "index.mmi", f.set / "index.mmi",
                  fs::copy_options::overwrite_existing);
    f.refuses_to_open("not the index that the manifest describes");
  }
  SUBCASE("rows that point out of their shard") {
    std::vector<IndexRow> rows;
    const auto set = Dataset::open(f.set);
    for (uint64_t i = 0; i < 20; ++i) rows.push_back(set->index().row(i));
    rows[3].offset = 1 << 20;
    write_index(f.set / "index.mmi", rows);
    f.edit_manifest([&](mm::Json& json) {
      const FileEntry entry = describe_file(f.set, "index.mmi");
      json["index"]["bytes"] = entry.bytes;
      json["index"]["xxh3_128"] = entry.xxh3_128;
    });
    f.refuses_to_open("row 3 has an impossible place or size");
  }
}

TEST_CASE("dataset: a manifest that lacks, mistypes or contradicts is refused naming the key") {
  const Fixture f;
  SUBCASE("none") {
    fs::remove(f.set / "manifest.json");
    f.refuses_to_open("mmshard pack");
  }
  SUBCASE("version") {
    f.edit_manifest([](mm::Json& json) { json["version"] = 4; });
    f.refuses_to_open("version 4, this program reads 1 to 3");
  }
  SUBCASE("format") {
    f.edit_manifest([](mm::Json& json) { json["format"] = "other"; });
    f.refuses_to_open("format \"other\"");
  }
  SUBCASE("missing key") {
    f.edit_manifest([](mm::Json& json) { json.erase("index"); });
    f.refuses_to_open("\"index\" is missing");
  }
  SUBCASE("type") {
    f.edit_manifest([](mm::Json& json) { json["counts"]["samples"] = "20"; });
    f.refuses_to_open("\"samples\"");
  }
  SUBCASE("range") {
    f.edit_manifest([](mm::Json& json) { json["pictures"]["side"] = uint64_t{1} << 40; });
    f.refuses_to_open("\"side\"");
  }
  SUBCASE("count") {
    f.edit_manifest([](mm::Json& json) { json["counts"]["samples"] = 19; });
    f.refuses_to_open("its shards hold 20 samples, counts says 19");
  }
  SUBCASE("name that leaves the directory") {
    f.edit_manifest([](mm::Json& json) { json["index"]["file"] = "../index.mmi"; });
    f.refuses_to_open("not a plain name");
  }
  SUBCASE("a shard twice") {
    f.edit_manifest([](mm::Json& json) { json["shards"][1] = json["shards"][0]; });
    f.refuses_to_open("listed twice");
  }
}

TEST_CASE("dataset: samples whose tokens lie about pictures or vocabulary are refused") {
  const TempDir dir;
  const auto set = dir / "set";
  write_tiny_dataset(set, 20);
  const auto edit = [&](const char* section, const char* key, int value) {
    mm::Json json = mm::read_json_file(set / "manifest.json");
    json.erase("checksum");  // of a set that is consistent but wrong
    json[section][key] = value;
    mm::write_file_atomic(set / "manifest.json", json.dump());
  };
  edit("tokenizer", "vocab_size", 12);
  CHECK(Dataset::open(set)->read(5).failure().message.find("outside the vocabulary") !=
        std::string::npos);
  edit("tokenizer", "vocab_size", kVocabulary);
  edit("tokenizer", "image_token_id", 7);
  CHECK(!Dataset::open(set)->read(5).ok());
  edit("tokenizer", "image_token_id", kImageToken);
  edit("pictures", "side", 5);
  CHECK(Dataset::open(set)->read(5).failure().message.find(
            "picture of 4x4, the data set has 5x5") != std::string::npos);
}
