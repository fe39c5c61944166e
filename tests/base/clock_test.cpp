#include "lib/base/clock.h"

#include <doctest/doctest.h>

#include <cmath>

TEST_CASE("iso_time: UTC with milliseconds, before 1970 too") {
  CHECK(mm::iso_time(0) == "1970-01-01T00:00:00.000Z");
  CHECK(mm::iso_time(1769860800123) == "2026-01-31T12:00:00.123Z");
  CHECK(mm::iso_time(-1) == "1969-12-31T23:59:59.999Z");
}

TEST_CASE("duration_text: minutes and seconds, hours from one hour on") {
  CHECK(mm::duration_text(0) == "0:00");
  CHECK(mm::duration_text(-3) == "0:00");
  CHECK(mm::duration_text(65.4) == "1:05");
  CHECK(mm::duration_text(3599.9) == "1:00:00");
  CHECK(mm::duration_text(12345) == "3:25:45");
  CHECK(mm::duration_text(INFINITY) == "?");
}

TEST_CASE("system_clock: monotonic time does not go back, wall time is after 2024") {
  const double before = mm::system_clock().monotonic_s();
  CHECK(mm::system_clock().monotonic_s() >= before);
  CHECK(mm::system_clock().unix_ms() > 1704067200000);
}
