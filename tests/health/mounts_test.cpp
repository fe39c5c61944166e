#include "lib/health/mounts.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cerrno>

#include "tests/health/planted_node.h"

// Verdicts on mounts and paths, whose answers are planted.

using namespace mm::health;

namespace {

Mount store(const char* options = "rw,vers=4.2") {
  return {.device = "filer:/store",
          .point = "/store",
          .type = "nfs4",
          .options = options,
          .network = true};
}

DiskSpace room(double free_gib, uint64_t inodes = 1'000'000) {
  return {.path = "/scratch",
          .total_bytes = uint64_t{100} << 30,
          .free_bytes = static_cast<uint64_t>(free_gib * (1 << 30)),
          .free_inodes = inodes,
          .total_inodes = 2'000'000};
}

std::string shown(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& f : findings)
    text += fmt::format("{}{}{} {}: {}\n", level_word(f.level), f.code.empty() ? "" : " ", f.code,
                        f.where, f.what);
  return text;
}

}  // namespace

TEST_CASE("mounts: each way not to answer has its code and action") {
  const auto with = [](int error, bool hung, const char* problem) {
    Mount mount = store();
    mount.space.error = error;
    mount.space.hung = hung;
    mount.space.problem = problem;
    return judge_mounts({mount}, {});
  };
  CHECK(shown(with(0, true, "no answer within 2000 ms")) ==
        "BAD F19 mount /store (nfs4): does not answer\n");
  CHECK(shown(with(ESTALE, false, "Stale file handle")) == "BAD F18 mount /store (nfs4): stale\n");
  CHECK(shown(with(EIO, false, "Input/output error")) ==
        "BAD F18 mount /store (nfs4): not readable\n");
  const auto absent = with(ENOENT, false, "No such file or directory");
  CHECK(absent.front().action == "mount it, or correct the path");
  // What only root may look into is no fault.
  CHECK(shown(with(EACCES, false, "Permission denied")) == "ok mounts: 1 answer\n");
  CHECK(shown(with(EPERM, false, "Operation not permitted")) == "ok mounts: 1 answer\n");
}

TEST_CASE("mounts: read-only by wish is good, read-only after an error is F48") {
  CHECK(shown(judge_mounts({store("ro,vers=4.2")}, {})) == "ok mounts: 1 answer\n");
  CHECK(shown(judge_mounts({store("ro,errors=remount-ro")}, {})) ==
        "BAD F48 mount /store (nfs4): went read-only after an error\n");
  CHECK(shown(judge_mounts({store("rw,errors=remount-ro")}, {})) == "ok mounts: 1 answer\n");
  CHECK(shown(judge_mounts({store("ro,emergency_ro")}, {})) ==
        "BAD F48 mount /store (nfs4): went read-only after an error\n");
  CHECK(store("rw,nosuid").has_option("nosuid"));
  CHECK_FALSE(store("rw,nosuid").has_option("suid"));
  CHECK_FALSE(store("").has_option("rw"));
}

TEST_CASE("mounts: expected ones that are absent, each by its name; none at all is not checked") {
  Expectation expected;
  expected.storage.mounts = {"/store", "/home", "/scratch"};
  CHECK(shown(judge_mounts({store()}, expected)) ==
        "BAD F18 mount /home: not mounted\nBAD F18 mount /scratch: not mounted\n");
  CHECK(shown(judge_mounts({}, {})) == "not checked mounts: no disk or network mount\n");
}

TEST_CASE(
    "mounts: the table is read line by line; broken lines and kernel file systems are left out") {
  const test::PlantedTree tree;
  tree.plant(
      "proc/self/mounts",
      "proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
      "broken\n\n/dev/sda1\n/dev/sda1 / ext4\n"
      "/dev/nvme0n1p1 /scratch xfs rw,noatime 0 0\nfiler:/home /home nfs rw 0 0\n"
      "filer:/home /again nfs rw 0 0\nmgs@tcp:/lus /lus lustre rw 0 0\n");
  const auto mounts = read_mounts(SystemTree(tree.root()), 3000);
  std::string points;
  for (const Mount& mount : mounts) points += mount.point + (mount.network ? " network\n" : "\n");
  // A file server may be well at one place and not at another, so both are asked.
  CHECK(points == "/scratch\n/home network\n/again network\n/lus network\n");
  for (const Mount& mount : mounts) CHECK(mount.space.error == ENOENT);
}

TEST_CASE("mounts: at most 64 are asked, however long the table is") {
  const test::PlantedTree tree;
  std::string table;
  for (int i = 0; i < 500; ++i) table += fmt::format("filer:/{0} /m{0} nfs4 rw 0 0\n", i);
  tree.plant("proc/self/mounts", table);
  CHECK(read_mounts(SystemTree(tree.root()), 3000).size() == 64);
}

TEST_CASE("paths: room and inodes at the limit are good, below are F20 and F21") {
  Expectation expected;
  expected.storage.free_gib_min = 10;
  expected.storage.free_inodes_min = 1000;
  const auto codes = [&](const DiskSpace& space) {
    return judge_paths({space}, expected).front().code;
  };
  CHECK(codes(room(10)) == "");
  CHECK(codes(room(9.99)) == "F20");
  CHECK(codes(room(50, 1000)) == "");
  CHECK(codes(room(50, 999)) == "F21");
  // Some file systems have no table of inodes.
  DiskSpace none = room(50, 0);
  none.total_inodes = 0;
  CHECK(codes(none) == "");
  DiskSpace fixed = room(50);
  fixed.read_only = true;
  CHECK(codes(fixed) == "F48");
  DiskSpace gone = room(50);
  gone.problem = "Input/output error";
  gone.error = EIO;
  CHECK(codes(gone) == "F18");
  CHECK(judge_paths({room(50)}, expected).front().what ==
        "50.0 GiB of 100.0 GiB free, 1000000 inodes free");
  CHECK(judge_paths({}, expected).empty());
}
