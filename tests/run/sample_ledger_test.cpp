#include "lib/run/sample_ledger.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/run/fault_point.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::run;
using mm::data::test::TempDir;

TEST_CASE("SampleLedger: lines of all ranks by step, a resume cuts what runs again") {
  TempDir dir;
  {
    SampleLedger zero(dir.path(), 0), one(dir.path(), 1);
    for (int64_t step = 1; step <= 4; ++step) {
      one.record(step, "all", 0, {static_cast<uint64_t>(10 * step)});
      zero.record(step, "all", 0, {static_cast<uint64_t>(step), 99});
    }
  }
  CHECK(read_ledger(dir.path()).size() == 8);
  SampleLedger::cut(dir.path(), 2);
  const std::vector<LedgerRow> rows = read_ledger(dir.path());
  REQUIRE(rows.size() == 4);
  CHECK(rows.back().step == 2);
  CHECK(rows[0].samples == std::vector<uint64_t>{1, 99});
}

TEST_CASE("fault_hook: nothing without the variable") { CHECK_FALSE(fault_hook(0)); }
