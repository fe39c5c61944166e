#include "lib/health/disk_probe.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/health/mounts.h"
#include "tests/health/planted_node.h"

using namespace mm::health;

namespace {

// A FUSE mount whose server never answers, as a dead file server looks; only root may make one.
class DeadMount {
 public:
  explicit DeadMount(std::filesystem::path at) : at_(std::move(at)) {
    std::filesystem::create_directories(at_);
    fd_ = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options = fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", fd_);
    mounted_ = fd_ >= 0 && ::mount("dead", at_.c_str(), "fuse", 0, options.c_str()) == 0;
  }
  DeadMount(const DeadMount&) = delete;
  ~DeadMount() {
    // Closing the device frees whoever waits.
    if (fd_ >= 0) ::close(fd_);
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  std::filesystem::path at_;
  int fd_ = -1;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("disk probe: a directory that exists has room, one that does not says why") {
  const DiskSpace here = probe_disk(".");
  CHECK(here.problem.empty());
  CHECK(here.total_bytes >= here.free_bytes);
  CHECK(here.total_bytes > 0);
  const DiskSpace absent = probe_disk("/no/such/place");
  CHECK(absent.problem == "No such file or directory");
  CHECK_FALSE(absent.hung);
}

TEST_CASE("disk probe: without an answer by the deadline the path is called hung, and we return") {
  const test::PlantedTree tree;
  const auto pipe = tree.root() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);  // opening it waits for a writer
  const double start_s = mm::system_clock().monotonic_s();
  const auto spaces = probe_disks({pipe, pipe, ".", pipe}, 200);
  CHECK(mm::system_clock().monotonic_s() - start_s < 2);
  CHECK(spaces[0].hung);
  CHECK(spaces[0].problem == "no answer within 200 ms");
  CHECK(spaces[2].problem.empty());
}

TEST_CASE("mounts: a dead server cannot hang the prober and is F19") {
  const test::PlantedTree tree;
  const DeadMount dead(tree.root() / "store");
  if (!dead.mounted()) {
    MESSAGE("skipped: a FUSE mount needs root and /dev/fuse");
    return;
  }
  tree.plant("proc/self/mounts", "filer:/store /store nfs4 rw 0 0\n");
  const double start_s = mm::system_clock().monotonic_s();
  const auto findings = judge_mounts(read_mounts(SystemTree(tree.root()), 300), {});
  CHECK(mm::system_clock().monotonic_s() - start_s < 3);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "F19");
  CHECK(findings[0].where == "mount /store (nfs4)");
  CHECK(findings[0].evidence == "no answer within 300 ms");
}

TEST_CASE("mounts: blanks in names, expected mounts that are absent, the same disk twice") {
  const test::PlantedTree tree;
  tree.plant("a b/.keep", "");
  tree.plant("proc/self/mounts",
             "/dev/x /a\\040b ext4 rw 0 0\n/dev/x /again ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n");
  const auto mounts = read_mounts(SystemTree(tree.root()), 3000);
  REQUIRE(mounts.size() == 1);
  CHECK(mounts[0].point == "/a b");
  CHECK(mounts[0].space.problem.empty());
  Expectation expected;
  expected.storage.mounts = {"/store"};
  const auto findings = judge_mounts(mounts, expected);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "F18");
}
