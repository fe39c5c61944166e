#include "lib/data/duplicates.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

using namespace mm::data;

namespace {

struct Sample {
  uint64_t row = 0;
  std::string key;
  std::vector<uint64_t> pictures;
  uint32_t repeat = 0;
};

DuplicateReport find_duplicates(const std::vector<Sample>& samples) {
  DuplicateFinder finder;
  for (const Sample& s : samples) finder.add(s.row, s.key, s.repeat, s.pictures);
  return finder.report([&](uint64_t row) {
    for (const Sample& s : samples) {
      if (s.row == row) return s.key;
    }
    return std::string("?");
  });
}

}  // namespace

TEST_CASE("duplicates: ids and pictures that came before are counted and the first are named") {
  const std::vector<Sample> samples = {Sample{0, "a", {1}}, Sample{2, "b", {2, 3}},
                                       Sample{3, "a", {2}}, Sample{5, "c", {3, 9}},
                                       Sample{6, "a", {}}};
  const auto report = find_duplicates(samples);
  CHECK(report.ids == 2);
  CHECK(report.id_examples == std::vector<DuplicatePair>{{3, 0, "a"}, {6, 0, "a"}});
  CHECK(report.pictures == 2);
  CHECK(report.picture_examples == std::vector<DuplicatePair>{{3, 2, "a"}, {5, 2, "c"}});
}

TEST_CASE("duplicates: copies that were asked for and a picture shown twice in one row are none") {
  const std::vector<Sample> samples = {Sample{0, "a", {1, 1}}, Sample{1, "a", {1, 1}, 1},
                                       Sample{2, "b", {2}}};
  CHECK(find_duplicates(samples) == DuplicateReport{});
}

TEST_CASE("duplicates: only the first examples are kept, the JSON form gives the report back") {
  std::vector<Sample> samples;
  for (uint64_t i = 0; i < 50; ++i) samples.push_back(Sample{i, "k", {7}});
  const auto report = find_duplicates(samples);
  CHECK(report.ids == 49);
  CHECK(report.pictures == 49);
  CHECK(report.id_examples.size() == kDuplicateExamples);
  CHECK(duplicates_from_json(to_json(report), "x") == report);
  CHECK(duplicates_line(to_json(report), "x") ==
        "duplicates 49 ids, 49 pictures (the first: \"k\", row 1 repeats row 0)");
  CHECK(duplicates_line(to_json(DuplicateReport{}), "x").empty());
  CHECK(duplicates_line(nullptr, "x").empty());
  CHECK_THROWS_AS(duplicates_from_json(mm::Json{{"ids", -1}}, "x"), mm::DataError);
}
