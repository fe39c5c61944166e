#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "lib/base/error.h"
#include "lib/data/mixture_turns.h"
#include "lib/data/source_flags.h"
#include "lib/data/source_json.h"
#include "lib/data/source_openers.h"
#include "tests/data/source_reading.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

/// NAME.jsonl of `count` texts with ids NAME0, NAME1, ...
fs::path write_rows(const TempDir& dir, const std::string& name, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{{\"id\": \"{}{}\", \"text\": \"t\"}}\n", name, i);
  mm::write_file_atomic(dir / (name + ".jsonl"), text);
  return dir / (name + ".jsonl");
}

SourcePart part(const fs::path& path, double weight, double repeat = 1) {
  return {{.kind = SourceKind::kJsonl, .path = path}, weight, repeat};
}

std::vector<SourceItem> read_parts(std::vector<SourcePart> parts) {
  const auto source = open_parts(std::move(parts));
  std::vector<SourceItem> items;
  while (auto item = source->next()) items.push_back(std::move(*item));
  return items;
}

/// First letters of the keys.
std::string letters(const std::vector<SourceItem>& items) {
  std::string text;
  for (const std::string& key : keys_of(items)) text += key[0];
  return text;
}

}  // namespace

TEST_CASE("mixture: in every prefix each source was taken floor or ceil of its share") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 40; ++round) {
    std::vector<double> weights(2 + random() % 8);
    for (double& weight : weights) weight = static_cast<double>(1 + random() % 1000) / 100;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    MixtureTurns turns(weights);
    for (uint64_t n = 1; n <= 2000; ++n) {
      turns.took(turns.due());
      for (size_t i = 0; i < weights.size(); ++i) {
        const double quota = static_cast<double>(n) * weights[i] / sum;
        const auto count = static_cast<double>(turns.count(i));
        REQUIRE(count >= std::floor(quota - 1e-6));
        REQUIRE(count <= std::ceil(quota + 1e-6));
      }
    }
  }
}

TEST_CASE("mixture: equal weights take turns, the first goes first") {
  MixtureTurns turns(std::vector<double>{1, 1, 1});
  std::vector<size_t> order;
  for (int i = 0; i < 6; ++i) {
    order.push_back(turns.due());
    turns.took(order.back());
  }
  CHECK(order == std::vector<size_t>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("mixture: weights that cannot be are refused") {
  for (const std::vector<double>& weights :
       {std::vector<double>{1, 0}, {1, -1}, {1, NAN}, {1, INFINITY}, {1, 1e-9}}) {
    CHECK_THROWS_AS(MixtureTurns{weights}, mm::UsageError);
  }
}

TEST_CASE("mixture: weighted sources interleave until the one that is due has ended") {
  const TempDir dir;
  const auto items =
      read_parts({part(write_rows(dir, "a", 100), 3), part(write_rows(dir, "b", 2), 1)});
  CHECK(letters(items) == "aaabaaabaaa");
  const auto& end = std::get<LedgerEntry>(items.back());
  CHECK(end.kind == "mixture_end");
  CHECK(end.skipped);
  CHECK(end.row == 11);
  CHECK(end.message.find("it took 9 of") != std::string::npos);
}

TEST_CASE("mixture: bad rows pass through and do not count as a share") {
  const TempDir dir;
  mm::write_file_atomic(dir / "a.jsonl",
                        "{\"id\": \"a0\", \"text\": \"t\"}\nbad\nbad\nbad\n"
                        "{\"id\": \"a1\", \"text\": \"t\"}\n");
  const auto items = read_parts({part(dir / "a.jsonl", 1), part(write_rows(dir, "b", 5), 1)});
  CHECK(kinds_of(items) == std::vector<std::string>{"", "", "bad_json", "bad_json", "bad_json", "",
                                                    "", "mixture_end"});
  CHECK(letters(items) == "abab");
}

TEST_CASE("mixture: without weights one after another; repeats and fractions of a pass") {
  const TempDir dir;
  const auto a = write_rows(dir, "a", 4), b = write_rows(dir, "b", 10);
  const auto items = read_parts({part(a, 0, 2.5), part(b, 0, 0.3)});
  CHECK(keys_of(items) == std::vector<std::string>{"a0", "a1", "a2", "a3", "a0", "a1", "a2", "a3",
                                                   "a1", "a3", "b3", "b6", "b9"});
  CHECK(record(items[3]).repeat == 0);
  CHECK(record(items[4]).repeat == 1);
  CHECK(record(items[8]).repeat == 2);
  CHECK(record(items[12]).row == 12);
  CHECK(record(items[0]).root == dir.path().string());
  CHECK_THROWS_AS(read_parts({part(a, 1), part(b, 0)}), mm::UsageError);
  CHECK_THROWS_AS(read_parts({part(a, 0, 0)}), mm::UsageError);
}

TEST_CASE("mixture file: paths beside it, formats told or named, faults with line and column") {
  const TempDir dir;
  write_rows(dir, "a", 4);
  write_rows(dir, "b", 4);
  const auto read = [&](const std::string& text) {
    mm::write_file_atomic(dir / "mix.toml", text);
    return read_all({.kind = SourceKind::kMixture, .path = dir / "mix.toml"});
  };
  const auto items = read(
      "[[source]]\npath = \"a.jsonl\"\nweight = 1\n"
      "[[source]]\npath = \"b.jsonl\"\nweight = 1\nformat = \"jsonl\"\n");
  CHECK(letters(items) == "abababab");
  CHECK_THROWS_WITH_AS(read("[[source]]\npath = \"a.jsonl\"\nwieght = 1\n"),
                       doctest::Contains("mix.toml:3:"), mm::UsageError);
  CHECK_THROWS_AS(read("a = 1\n"), mm::UsageError);
  CHECK_THROWS_AS(read("[[source]]\npath = \"mix.toml\"\n"), mm::UsageError);
}

TEST_CASE("internvl meta: roots, repeat_time and annotations beside the file") {
  const TempDir dir;
  write_rows(dir, "a", 4);
  write_rows(dir, "b", 2);
  mm::write_file_atomic(dir / "meta.json", R"({
    "first": {"root": "pictures/", "annotation": "a.jsonl", "data_augment": false,
              "repeat_time": 0.5, "length": 4},
    "second": {"root": "other", "annotation": "b.jsonl", "repeat_time": 2}})");
  CHECK(sniff_source(dir / "meta.json") == SourceKind::kInternvlMeta);
  const SourceOptions options{.kind = SourceKind::kInternvlMeta, .path = dir / "meta.json"};
  const auto items = read_all(options);
  CHECK(keys_of(items) == std::vector<std::string>{"a1", "a3", "b0", "b1", "b0", "b1"});
  CHECK(record(items[0]).root == (dir / "pictures/").string());
  CHECK(record(items[5]).root == (dir / "other").string());
  const mm::Json json = source_json(options);
  CHECK(json["parts"].size() == 2);
  CHECK(json["parts"][1]["repeat"] == 2);
  for (const char* bad : {R"({"a": {"root": "x"}})", R"({"a": {"annotation": "none.jsonl"}})",
                          R"({"a": {"annotation": "b.jsonl", "repeat_time": "2"}})", "{}", "[]"}) {
    mm::write_file_atomic(dir / "meta.json", bad);
    CHECK_THROWS_AS(read_all(options), mm::DataError);
  }
}

TEST_CASE("source flags: one path is that source, several are a mixture, counts must match") {
  const TempDir dir;
  const std::string a = write_rows(dir, "a", 4), b = write_rows(dir, "b", 4);
  const SourceOptions one = source_from_flags({.paths = {a}});
  CHECK(one.kind == SourceKind::kJsonl);
  CHECK(one.path == a);
  const SourceOptions two = source_from_flags({.paths = {a, b},
                                               .weights = {3, 1},
                                               .formats = {"jsonl"},
                                               .image_roots = {dir.path().string()}});
  CHECK(two.kind == SourceKind::kMixture);
  REQUIRE(two.parts.size() == 2);
  CHECK(two.parts[1].weight == 1);
  CHECK(two.parts[1].options.image_root == dir.path());
  CHECK(letters(read_all(two)) == "aaaba");
  CHECK(source_json(two)["parts"][0]["weight"] == 3);
  CHECK_THROWS_AS(source_from_flags({}), mm::UsageError);
  CHECK_THROWS_AS(source_from_flags({.paths = {a, b}, .weights = {3}}), mm::UsageError);
  CHECK_THROWS_AS(source_from_flags({.paths = {a}, .formats = {"nope"}}), mm::UsageError);
  CHECK_THROWS_AS(source_from_flags({.paths = {a + "x"}}), mm::UsageError);
}

TEST_CASE("mixture: records and packed rows know their source, files of one source do not count") {
  const TempDir dir;
  mm::write_file_atomic(dir / "a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  mm::write_file_atomic(dir / "b1.jsonl", "{\"text\": \"c\"}\n");
  mm::write_file_atomic(dir / "b2.jsonl", "{\"text\": \"d\"}\n");
  SourceOptions mixture{.kind = SourceKind::kMixture, .path = dir / "a.jsonl"};
  for (const char* part : {"a.jsonl", "b{1,2}.jsonl"})
    mixture.parts.push_back({{.kind = SourceKind::kJsonl, .path = dir / part}});
  std::vector<uint32_t> sources;
  for (const auto& item : read_all(mixture)) sources.push_back(record(item).source);
  CHECK(sources == std::vector<uint32_t>{0, 0, 1, 1});
  CHECK(source_names(source_json(mixture)) == std::vector<std::string>{"a", "b{1,2}"});
  CHECK(source_names(source_json(mixture.parts[1].options)) == std::vector<std::string>{"b{1,2}"});
  CHECK(source_names({{"parts", {{{"path", "x/a.csv"}}, {{"path", "y/a.csv"}}}}}) ==
        std::vector<std::string>{"a", "a-1"});
  CHECK(source_names(nullptr) == std::vector<std::string>{"source"});
}
