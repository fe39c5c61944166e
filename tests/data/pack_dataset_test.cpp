#include "lib/data/pack_dataset.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/bad_sample_ledger.h"
#include "lib/data/dataset.h"
#include "lib/data/verify_dataset.h"
#include "lib/text/tokenizer.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> keys_of(const fs::path& directory) {
  const auto set = Dataset::open(directory);
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < set->rows(); ++i) keys.emplace_back(set->key(i));
  std::sort(keys.begin(), keys.end());
  return keys;
}

/// Packs in a child that is killed after `delay`; true if the child was killed before it ended.
bool pack_and_kill(const PackOptions& options, const PackRun& run,
                   std::chrono::microseconds delay) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      pack_dataset(options, run);
      _exit(0);
    } catch (...) {
      _exit(1);
    }
  }
  std::this_thread::sleep_for(delay);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFSIGNALED(status);
}

}  // namespace

TEST_CASE("a tokenizer as vocab.json and merges.txt, by file or directory, is kept as one file") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", good_rows(4));
  PackOptions options = toy_options(dir / "in.jsonl");
  options.pictures.geometry = "buckets";
  options.pictures.buckets = "8x8";
  const fs::path clip = fs::path(MM_TEST_DATA) / "text/fixtures/clip";
  for (const char* name : {"", "vocab.json"}) {
    options.tokenizer = clip / name;
    const fs::path out = dir / (std::string("set") + name);
    pack_dataset(options, {.output = out});
    const DatasetManifest manifest = read_manifest(out);
    CHECK(manifest.tokenizer.kind == "tokenizer.json");
    CHECK(manifest.tokenizer.vocab_size == 764 + 1);  // and <image>
    CHECK(manifest.tokenizer.eos_id == 763);
    CHECK(mm::read_file(out / "tokenizer.json") == mm::text::read_tokenizer(clip));
    const auto sample = Dataset::open(out)->read(0);
    REQUIRE(sample.ok());
    CHECK(sample->text.tokens.front() == 762);
    CHECK(sample->text.tokens.back() == 763);
  }
}

TEST_CASE(
    "C05: 95 good and five broken pictures: 6 % packs 95 and lists 5, 4 % refuses and names them") {
  const std::vector<std::string> broken = {"truncated.jpg", "truncated.png", "bad_crc.png",
                                           "empty.jpg", "html_named.jpg"};
  auto rows = good_rows(95);
  for (size_t i = 0; i < broken.size(); ++i)
    rows.insert(rows.begin() + static_cast<long>(17 * i), {broken[i], "a cat"});
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", rows);
  const PackOptions options = toy_options(dir / "in.jsonl");

  CHECK_THROWS_WITH_AS(pack_dataset(options, {.output = dir / "out", .bad_limit = 0.04}),
                       doctest::Contains("5 of 100 samples are bad (5 %), the limit is 4 %"),
                       mm::DataError);
  CHECK(!fs::exists(dir / "out"));
  for (const std::string& name : broken) {
    CHECK_THROWS_WITH_AS(pack_dataset(options, {.output = dir / "out", .bad_limit = 0.04}),
                         doctest::Contains(name.c_str()), mm::DataError);
  }
  const PackResult result = pack_dataset(options, {.output = dir / "out", .bad_limit = 0.06});
  CHECK(result.manifest.counts.samples == 95);
  CHECK(result.manifest.counts.bad == 5);
  const auto ledger = read_ledger(dir / "out/ledger.jsonl");
  REQUIRE(ledger.size() == 5);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(ledger[i].path == broken[i]);
    CHECK(ledger[i].row == 17 * i);
    CHECK(!ledger[i].message.empty());
  }
  CHECK(verify_dataset(dir / "out").sound());
}

TEST_CASE("pack: a picture damaged up to the next restart marker is packed, with a warning") {
  const TempDir dir;
  std::string file = mm::read_file(field_picture("restart.jpg"));
  mm::write_file_atomic(dir / "good.jpg", file);
  mm::write_file_atomic(dir / "stray.jpg", file.insert(file.find("\xFF\xD1"), "abcde"));
  write_jsonl(dir / "in.jsonl",
              {{"good.jpg", "a cat"}, {"stray.jpg", "a dog"}, {"none.jpg", "a cat and"}});
  PackOptions options = toy_options(dir / "in.jsonl");
  options.source.image_root = dir.path();
  const PackRun run{.output = dir / "out", .threads = 1, .bad_limit = 0.4};
  const PackResult result = pack_dataset(options, run);
  CHECK(result.manifest.counts.samples == 2);
  CHECK(result.manifest.counts.bad == 1);
  CHECK(result.manifest.source_rows.count == 3);
  const auto ledger = read_ledger(dir / "out/ledger.jsonl");
  REQUIRE(ledger.size() == 2);
  CHECK(ledger[0].row == 1);
  CHECK(ledger[0].path == "stray.jpg");
  CHECK(ledger[0].kind == "damaged_part");
  CHECK(ledger[0].message.find("5 bytes left over") != std::string::npos);
  CHECK(ledger[0].fate() == Fate::kWarned);
  CHECK(ledger[1].fate() == Fate::kBad);
  CHECK(verify_dataset(dir / "out").sound());
}

TEST_CASE("C06: a header that claims a giant picture is one bad sample") {
  const TempDir dir;
  auto rows = good_rows(3);
  rows.emplace_back("bomb.jpg", "a dog");
  write_jsonl(dir / "in.jsonl", rows);
  const PackResult result =
      pack_dataset(toy_options(dir / "in.jsonl"), {.output = dir / "out", .bad_limit = 0.5});
  CHECK(result.manifest.counts.samples == 3);
  CHECK(read_ledger(dir / "out/ledger.jsonl").at(0).kind == "too_large");
}

TEST_CASE("C07: names round-trip byte for byte, from a folder and from a JSON list with escapes") {
  const std::vector<std::string> names = {"22.05.png", "UPPER CASE.JPEG", "données – 北京 №1.jpg",
                                          "png_inside.jpg"};
  const TempDir dir;
  fs::create_directories(dir / "in");
  std::string list = "[";
  for (const std::string& name : names) {
    const auto from =
        fs::exists(field_picture(name)) ? field_picture(name) : field_picture("names/" + name);
    fs::copy_file(from, dir / "in" / name);
    mm::write_file_atomic((dir / "in" / name).replace_extension(".txt"), "a cat");
    list += (list.size() > 1 ? "," : "") +
            mm::Json{{"image", name}, {"text", "a cat"}}.dump(-1, ' ', true);
  }
  mm::write_file_atomic(dir / "in.json", list + "]");
  PackOptions options = toy_options(dir / "in");
  options.source = {.kind = SourceKind::kFolder, .path = dir / "in"};
  CHECK(pack_dataset(options, {.output = dir / "folder"}).manifest.counts.bad == 0);
  CHECK(keys_of(dir / "folder") == names);
  CHECK(list.find("\\u5317") != std::string::npos);
  options.source = {
      .kind = SourceKind::kLlavaJson, .path = dir / "in.json", .image_root = dir / "in"};
  CHECK(pack_dataset(options, {.output = dir / "list"}).manifest.counts.bad == 0);
  CHECK(keys_of(dir / "list") == names);
}

TEST_CASE("C01: a sideways WebP, an animation and a GIF are packed; a format not read is named") {
  const TempDir dir;
  mm::write_file_atomic(dir / "a.tif", std::string("II*\0........", 12));
  write_jsonl(
      dir / "in.jsonl",
      {{"exif_8.webp", "a cat"}, {"animated.gif", "a dog"}, {"animated.webp", "a dog and that"}});
  pack_dataset(toy_options(dir / "in.jsonl"), {.output = dir / "out"});
  CHECK(read_ledger(dir / "out/ledger.jsonl").empty());
  PackOptions options = toy_options(dir / "tif.jsonl");
  write_jsonl(dir / "tif.jsonl", {{"a.tif", "a cat"}, {"b.png", "a dog"}});
  fs::copy(field_picture("rgba.png"), dir / "b.png");
  options.source.image_root = dir / ".";
  pack_dataset(options, {.output = dir / "one", .bad_limit = 0.5});
  const auto ledger = read_ledger(dir / "one/ledger.jsonl");
  REQUIRE(ledger.size() == 1);
  CHECK(ledger[0].kind == "unsupported_format");
  CHECK(ledger[0].message.find("TIFF") != std::string::npos);
}

TEST_CASE("pack: the bytes do not depend on the thread count") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", good_rows(300));
  const PackOptions options = toy_options(dir / "in.jsonl");
  pack_dataset(options, {.output = dir / "one", .threads = 1});
  pack_dataset(options, {.output = dir / "three", .threads = 3});
  CHECK(contents(dir / "one") == contents(dir / "three"));
  CHECK(!fs::exists(dir / "one.partial"));
}

TEST_CASE("pack: samples are sorted by length in shards of about the asked size") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", good_rows(60));
  const PackOptions options = toy_options(dir / "in.jsonl");
  pack_dataset(options, {.output = dir / "out"});
  const auto set = Dataset::open(dir / "out");
  const auto sizes = set->sizes();
  CHECK(std::is_sorted(sizes.begin(), sizes.end(),
                       [](auto& a, auto& b) { return a.tokens < b.tokens; }));
  CHECK(set->manifest().shards.size() > 3);
  for (const auto& shard : set->manifest().shards) CHECK(shard.file.bytes <= options.shard_bytes);
}

TEST_CASE(
    "pack: killed at any moment and started again, the result has the bytes of an unkilled run") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", good_rows(600));
  const PackOptions options = toy_options(dir / "in.jsonl");
  const auto begin = std::chrono::steady_clock::now();
  pack_dataset(options, {.output = dir / "whole", .threads = 2});
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  const auto expected = contents(dir / "whole");
  int killed = 0;
  for (int i = 1; i <= 6; i += mm::env::get("MM_LONG") ? 1 : 2) {
    const PackRun run{.output = dir / fmt::format("set {}", i), .threads = 2};
    for (int again = 0; again < 3; ++again) killed += pack_and_kill(options, run, whole * i / 8);
    if (fs::exists(run.output)) CHECK(verify_dataset(run.output).sound());
    pack_dataset(options, run);
    CHECK(contents(run.output) == expected);
    CHECK(!fs::exists(run.output.string() + ".partial"));
  }
  CHECK(killed > 0);
}

TEST_CASE("pack: a run that failed before its first finished unit leaves nothing to clear away") {
  const TempDir dir;
  mm::write_file_atomic(dir / "in.json", "[1, 2");
  PackOptions options = toy_options(dir / "in.json");
  options.source.kind = SourceKind::kLlavaJson;
  CHECK_THROWS_AS(pack_dataset(options, {.output = dir / "out"}), mm::DataError);
  CHECK(!fs::exists(dir / "out.partial"));
  write_jsonl(dir / "in.jsonl", good_rows(3));
  options = toy_options(dir / "in.jsonl");
  options.tokenizer = dir / "in.jsonl";
  CHECK_THROWS_AS(pack_dataset(options, {.output = dir / "out"}), mm::DataError);
  CHECK(!fs::exists(dir / "out.partial"));
}

TEST_CASE("pack: finished units are not done again, damaged ones are") {
  const TempDir dir;
  auto rows = good_rows(300);
  rows.emplace_back("truncated.jpg", "a cat");
  write_jsonl(dir / "in.jsonl", rows);
  const PackOptions options = toy_options(dir / "in.jsonl");
  CHECK_THROWS_AS(pack_dataset(options, {.output = dir / "out", .bad_limit = 0}), mm::DataError);
  const auto unit = dir / "out.partial/units/unit-000001.mmu";
  REQUIRE(fs::exists(unit));
  std::string content = mm::read_file(unit);
  content[content.size() / 2] ^= 1;
  mm::write_file_atomic(unit, content);
  const PackResult result = pack_dataset(options, {.output = dir / "out", .bad_limit = 0.1});
  CHECK(result.units == 3);
  CHECK(result.units_reused == 2);
  pack_dataset(options, {.output = dir / "fresh", .bad_limit = 0.1});
  CHECK(contents(dir / "out") == contents(dir / "fresh"));
}

TEST_CASE(
    "pack: a finished set is left as it is, other options are refused naming the difference") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", good_rows(10));
  PackOptions options = toy_options(dir / "in.jsonl");
  CHECK(!pack_dataset(options, {.output = dir / "out"}).was_there);
  const auto before = contents(dir / "out");
  CHECK(pack_dataset(options, {.output = (dir / "out").string() + "/", .threads = 1}).was_there);
  options.max_length = 32;
  CHECK_THROWS_WITH_AS(pack_dataset(options, {.output = dir / "out"}),
                       doctest::Contains("max_length: 64 there, 32 now"), mm::UsageError);
  CHECK(contents(dir / "out") == before);
  fs::create_directories(dir / "strange");
  mm::write_file_atomic(dir / "strange/file", "mine");
  CHECK_THROWS_WITH_AS(pack_dataset(options, {.output = dir / "strange"}),
                       doctest::Contains("not a packed data set"), mm::UsageError);
  CHECK(fs::exists(dir / "strange/file"));
}

TEST_CASE("pack: a partial set of other options is refused naming the difference") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", {{"truncated.jpg", "a cat"}});
  PackOptions options = toy_options(dir / "in.jsonl");
  CHECK_THROWS_AS(pack_dataset(options, {.output = dir / "out"}), mm::DataError);
  options.pictures.filter = "box";
  CHECK_THROWS_WITH_AS(pack_dataset(options, {.output = dir / "out"}),
                       doctest::Contains("pictures.filter: \"bicubic\" there, \"box\" now"),
                       mm::UsageError);
}

TEST_CASE("pack: ids and exclude select records by key, unknown keys are named") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 6; ++i)
    text += mm::Json{{"id", i}, {"image", "rgba.png"}, {"text", "a cat"}}.dump() + "\n";
  mm::write_file_atomic(dir / "in.jsonl", text);
  mm::write_file_atomic(dir / "some", "1\n4\n5\n");
  mm::write_file_atomic(dir / "not", "4\n");
  mm::write_file_atomic(dir / "unknown", "4\n77\n");
  PackOptions options = toy_options(dir / "in.jsonl");
  options.ids = dir / "some";
  options.exclude = dir / "not";
  const PackResult result = pack_dataset(options, {.output = dir / "out"});
  CHECK(keys_of(dir / "out") == std::vector<std::string>{"1", "5"});
  CHECK(result.manifest.counts.skipped == 4);
  options.exclude = dir / "unknown";
  CHECK_THROWS_WITH_AS(pack_dataset(options, {.output = dir / "other"}),
                       doctest::Contains("the first is \"77\""), mm::DataError);
}

TEST_CASE("pack: text only drops pictures and their marks") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", {{"no such file.png", "a cat"}});
  PackOptions options = toy_options(dir / "in.jsonl");
  options.text_only = true;
  pack_dataset(options, {.output = dir / "out"});
  const auto set = Dataset::open(dir / "out");
  const auto sample = set->read(0);
  REQUIRE(sample.ok());
  CHECK(sample->text.image_begin.empty());
  CHECK(set->pictures().patches == 0);
  CHECK(std::count(sample->text.tokens.begin(), sample->text.tokens.end(), 6) == 0);
}

TEST_CASE("pack: JPEG storage gives back pictures near the raw ones") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", {{"sub_422.jpg", "a cat"}});
  PackOptions options = toy_options(dir / "in.jsonl");
  options.pictures.side = 32;
  options.pictures.patch = 8;
  pack_dataset(options, {.output = dir / "raw"});
  options.pictures.storage = "jpeg";
  pack_dataset(options, {.output = dir / "jpeg"});
  const auto raw = Dataset::open(dir / "raw")->read(0);
  const auto jpeg = Dataset::open(dir / "jpeg")->read(0);
  REQUIRE(raw.ok());
  REQUIRE(jpeg.ok());
  REQUIRE(raw->pixels.size() == jpeg->pixels.size());
  double difference = 0;
  for (size_t i = 0; i < raw->pixels.size(); ++i)
    difference += std::abs(raw->pixels[i] - jpeg->pixels[i]);
  CHECK(difference / static_cast<double>(raw->pixels.size()) < 12);
  CHECK(difference > 0);
}

TEST_CASE("pack: a source without a single sample is an error") {
  const TempDir dir;
  fs::create_directories(dir / "in");
  PackOptions options = toy_options(dir / "in");
  options.source = {.kind = SourceKind::kFolder, .path = dir / "in"};
  CHECK_THROWS_WITH_AS(pack_dataset(options, {.output = dir / "out"}),
                       doctest::Contains("nothing in it to pack"), mm::DataError);
  CHECK(!fs::exists(dir / "out"));
  // Nothing is left that other options would stumble over.
  CHECK(!fs::exists(dir / "out.partial"));
  write_jsonl(dir / "in.jsonl", good_rows(3));
  CHECK(pack_dataset(toy_options(dir / "in.jsonl"), {.output = dir / "out"})
            .manifest.counts.samples == 3);
}

TEST_CASE("pack: ids and pictures that come twice are counted and named in the manifest") {
  const TempDir dir;
  const auto rows = good_rows(4);
  std::string lines;
  for (const auto& [id, row] : {std::pair("a", 0), {"b", 1}, {"a", 2}, {"c", 0}, {"d", 3}}) {
    lines += mm::Json{{"id", id},
                      {"image", rows.at(static_cast<size_t>(row)).first},
                      {"text", rows.at(static_cast<size_t>(row)).second}}
                 .dump() +
             "\n";
  }
  mm::write_file_atomic(dir / "in.jsonl", lines);
  const auto packed = pack_dataset(toy_options(dir / "in.jsonl"), {.output = dir / "out"});
  const mm::Json& found = packed.manifest.duplicates;
  CHECK(packed.manifest.counts.samples == 5);
  CHECK(found["ids"] == 1);
  CHECK(found["id_examples"][0]["row"] == 2);
  CHECK(found["id_examples"][0]["first"] == 0);
  CHECK(found["pictures"] == 1);
  CHECK(found["picture_examples"][0]["row"] == 3);
  CHECK(found["picture_examples"][0]["first"] == 0);
}
