// Seeded damage to every file of a data set: each flip is found out or changes nothing.
#include <doctest/doctest.h>

#include <cstdlib>

#include "lib/base/error.h"
#include "lib/base/random.h"
#include "lib/data/dataset.h"
#include "lib/data/verify_dataset.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

int trials(int usual, int many) {
  const char* more = std::getenv("MM_LONG");
  return more != nullptr && *more == '1' ? many : usual;
}

/// All that a reader can get out of a data set.
struct Content {
  std::vector<SampleText> texts;
  std::vector<std::vector<uint8_t>> pixels;
  std::vector<std::string> keys;
  std::vector<SampleSize> sizes;
};

bool equal(const SampleSize& a, const SampleSize& b) {
  return a.tokens == b.tokens && a.images == b.images && a.targets == b.targets;
}

Content read_all(const Dataset& set) {
  Content content{{}, {}, {}, set.sizes()};
  for (uint64_t row = 0; row < set.rows(); ++row) {
    const auto sample = set.read(row);
    if (!sample) throw mm::DataError("{}", sample.failure().message);
    content.texts.push_back(sample->text);
    content.pixels.push_back(sample->pixels);
    content.keys.emplace_back(set.key(row));
  }
  return content;
}

/// True if the damage is found out, by opening, by reading or as a failure of a sample; else the
/// content must be what it was.
bool found_out(const fs::path& directory, const Content& expected) {
  try {
    const Content now = read_all(*Dataset::open(directory));
    CHECK(now.texts == expected.texts);
    CHECK(now.pixels == expected.pixels);
    CHECK(now.keys == expected.keys);
    CHECK(std::equal(now.sizes.begin(), now.sizes.end(), expected.sizes.begin(),
                     expected.sizes.end(), equal));
    return false;
  } catch (const mm::DataError&) {
    return true;
  } catch (const mm::IoError&) {
    return true;
  }
}

/// One to three damaged bytes, a cut, or bytes too many.
std::string damage(std::string content, const mm::Philox& random, uint64_t trial) {
  const auto draw = random.block(trial);
  const auto at = [&](uint32_t number) { return number % content.size(); };
  switch (draw[0] % 8) {
    case 0:
      return content.substr(0, at(draw[1]));
    case 1:
      return content + std::string(1 + draw[1] % 64, static_cast<char>(draw[2]));
    default:
      for (uint32_t i = 0; i <= draw[0] % 3; ++i)
        content[at(draw[1] + i * draw[3])] ^= static_cast<char>(1u << (draw[2] + i) % 8);
      return content;
  }
}

}  // namespace

TEST_CASE("fuzz: damage to manifest, index or shard is found out or harmless, never used") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 24);
  const Content expected = read_all(*Dataset::open(dir / "set"));
  const mm::Philox random(2024, "data set fuzz");
  for (const std::string name :
       {"manifest.json", "index.mmi", "shard-00000.mms", "shard-00002.mms"}) {
    const std::string good = mm::read_file(dir / "set" / name);
    int found = 0;
    const int count = trials(250, 10'000);
    for (int trial = 0; trial < count; ++trial) {
      const std::string bad = damage(good, random, static_cast<uint64_t>(trial));
      INFO(name, " trial ", trial);
      mm::write_file_atomic(dir / "set" / name, bad);
      const bool is_found = found_out(dir / "set", expected);
      found += is_found || bad == good;
    }
    mm::write_file_atomic(dir / "set" / name, good);
    // What remains is blanks of the manifest and fields of the shard's header that say nothing.
    CHECK(found >= count * 6 / 10);
  }
}

TEST_CASE("fuzz: verify calls no damaged file sound, whichever it is") {
  const TempDir dir;
  write_jsonl(dir / "in.jsonl", good_rows(20));
  pack_dataset(toy_options(dir / "in.jsonl"), {.output = dir / "set"});
  const mm::Philox random(7, "verify fuzz");
  for (const auto& [name, good] : contents(dir / "set")) {
    if (name == "manifest.json") continue;  // blanks in it mean nothing; the case above
    for (int trial = 0; trial < trials(12, 500); ++trial) {
      const std::string bad =
          damage(good.empty() ? "x" : good, random, static_cast<uint64_t>(trial));
      if (bad == good) continue;
      mm::write_file_atomic(dir / "set" / name, bad);
      INFO(name, " trial ", trial);
      CHECK(!verify_dataset(dir / "set", 1).sound());
    }
    mm::write_file_atomic(dir / "set" / name, good);
  }
  CHECK(verify_dataset(dir / "set").sound());
}
