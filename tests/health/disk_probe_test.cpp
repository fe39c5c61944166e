#include "lib/health/disk_probe.h"

#include <doctest/doctest.h>

using namespace mm::health;

TEST_CASE("disk probe: a directory that exists has room, one that does not says why") {
  const DiskSpace here = probe_disk(".");
  CHECK(here.problem.empty());
  CHECK(here.total_bytes >= here.free_bytes);
  CHECK(here.total_bytes > 0);
  const DiskSpace absent = probe_disk("/no/such/place");
  CHECK(absent.problem == "No such file or directory");
  CHECK_FALSE(absent.hung);
}

TEST_CASE("disk probe: without an answer by the deadline the disk is called hung, and we return") {
  // A deadline of -1 ms has passed before the child can answer.
  const DiskSpace space = probe_disk("/", -1);
  CHECK(space.hung);
  CHECK(space.problem == "no answer within -1 ms");
}
