#include "lib/data/pack_unit.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

void write_unit(const std::filesystem::path& path, uint64_t records,
                const std::vector<UnitOutcome>& outcomes) {
  UnitWriter writer(path.string() + ".aside");
  for (const UnitOutcome& outcome : outcomes) writer.add(outcome);
  writer.finish(path, records, 0);
}

}  // namespace

TEST_CASE("unit: the table comes back for the same records only") {
  const TempDir dir;
  const std::vector<UnitOutcome> outcomes = {
      BuiltSample{4, "a", {9, 1, 3}, 8, 8, "payload"},
      LedgerEntry{5, "b", "b.png", "truncated", "ends early"}};
  write_unit(dir / "u", 77, outcomes);
  const auto table = read_unit(dir / "u", 77, 3, UnitCheck::kTable);
  REQUIRE(table);
  REQUIRE(table->samples.size() == 1);
  const UnitSample& sample = table->samples[0];
  CHECK(sample.row == 4);
  CHECK(sample.key == "a");
  CHECK(sample.unit == 3);
  CHECK(sample.size.targets == 3);
  CHECK(mm::read_file(dir / "u").substr(sample.payload_offset, sample.payload_bytes) == "payload");
  CHECK(table->bad.at(0).kind == "truncated");
  CHECK(!read_unit(dir / "u", 78, 3, UnitCheck::kTable));
  CHECK(!read_unit(dir / "none", 77, 3, UnitCheck::kTable));
}

TEST_CASE("unit: cut or flipped anywhere it is made again, never half used") {
  const TempDir dir;
  write_unit(dir / "u", 77,
             std::vector<UnitOutcome>{BuiltSample{4, "a", {9, 1, 3}, 8, 8, "payload"}});
  const std::string good = mm::read_file(dir / "u");
  for (size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    mm::write_file_atomic(dir / "u", damaged);
    CHECK(!read_unit(dir / "u", 77, 0, UnitCheck::kAll));
    mm::write_file_atomic(dir / "u", good.substr(0, i));
    CHECK(!read_unit(dir / "u", 77, 0, UnitCheck::kAll));
  }
}

TEST_CASE("unit: its records' hash sees keys, pictures, texts and bad rows") {
  const auto record = [](const std::string& key, const std::string& image,
                         const std::string& text) {
    return Record{1, key, {image}, {{{mm::text::Role::kUser, text}}, 1}};
  };
  const auto bad = [](const std::string& message) {
    return LedgerEntry{.row = 1, .key = "k", .kind = "bad_row", .message = message};
  };
  const std::vector<SourceItem> items = {record("k", "a.png", "q"),
                                         record("l", "a.png", "q"),
                                         record("k", "b.png", "q"),
                                         record("k", "a.png", "r"),
                                         bad("x"),
                                         bad("y")};
  std::set<uint64_t> hashes;
  for (const SourceItem& item : items) {
    CHECK(records_hash({&item, 1}) == records_hash({&item, 1}));
    hashes.insert(records_hash({&item, 1}));
  }
  CHECK(hashes.size() == items.size());
}
