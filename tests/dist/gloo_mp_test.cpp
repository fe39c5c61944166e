#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/process.h"

namespace mm::dist {
namespace {

constexpr double kDeadlineS = 100;

/// Ranks as processes in a directory of their own; rank r's output lies in "rank<r>".
class Job {
 public:
  /// `dies_at` >= 0: the last rank kills itself before that call.
  Job(int world, int dies_at) {
    std::string pattern = (std::filesystem::temp_directory_path() / "mm_dist_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    for (int r = 0; r < world; ++r) {
      std::vector<std::string> command = {MM_DIST_RANK, std::to_string(r), std::to_string(world),
                                          (directory_ / "port").string()};
      if (dies_at >= 0 && r == world - 1) command.push_back(std::to_string(dies_at));
      ranks_.push_back(Child::spawn({.command = command,
                                     .environment = {"OMP_NUM_THREADS=1"},
                                     .output = directory_ / fmt::format("rank{}", r)}));
    }
  }
  ~Job() { std::filesystem::remove_all(directory_); }

  std::string wait(int rank) {
    const auto status = ranks_[static_cast<size_t>(rank)].wait_for(kDeadlineS);
    return status ? status->text() : "still running";
  }
  std::string output(int rank) const { return read_file(directory_ / fmt::format("rank{}", rank)); }

 private:
  std::filesystem::path directory_;
  std::vector<Child> ranks_;
};

}  // namespace

TEST_CASE("ranks as processes find one another by the port file and add up") {
  Job job(3, -1);
  for (int r = 0; r < 3; ++r) {
    CHECK(job.wait(r) == "exit code 0");
    CHECK(job.output(r) == "sum 54\n");  // 12 * (0.5 + 1.5 + 2.5)
  }
}

TEST_CASE(
    "a rank killed by SIGKILL gives the others CommError naming group, operation and number, in "
    "one line") {
  for (const int world : {2, 3}) {
    Job job(world, 5);
    CHECK(job.wait(world - 1) == "SIGKILL");
    for (int r = 0; r < world - 1; ++r) {
      CHECK(job.wait(r) == "exit code 76");
      const std::string output = job.output(r);
      INFO(output);
      CHECK(output.find(
                fmt::format("group \"data\" (rank {} of {}): all_reduce_sum #", r, world)) == 0);
      CHECK(output.find('\n') == output.size() - 1);  // no stack trace, no second line
    }
  }
}

}  // namespace mm::dist
