#include "lib/data/dataset_info.h"

#include <doctest/doctest.h>

#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

TEST_CASE("dataset info: counts and percentiles of the index") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 20);
  const DatasetInfo info = describe_dataset(*Dataset::open(dir / "set"));
  CHECK(info.manifest.counts.samples == 20);
  CHECK(info.text_only_samples == 10);
  CHECK(info.token_percentiles.front() == 4);
  CHECK(info.token_percentiles.back() == 12);
  CHECK(to_json(info)["token_percentiles"]["p100"] == 12);
  CHECK(to_json(info)["shards"] == 3);
}
