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
  /// `fault`: what the last rank does before its sixth call, "kill" or "abort"; empty: nothing.
  Job(int world, const std::string& fault) {
    std::string pattern = (std::filesystem::temp_directory_path() / "mm_dist_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    for (int r = 0; r < world; ++r) {
      std::vector<std::string> command = {MM_DIST_RANK, std::to_string(r), std::to_string(world),
                                          (directory_ / "port").string()};
      if (!fault.empty() && r == world - 1) command.insert(command.end(), {fault, "5"});
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
  Job job(3, "");
  for (int r = 0; r < 3; ++r) {
    CHECK(job.wait(r) == "exit code 0");
    CHECK(job.output(r) == "sum 54\n");  // 12 * (0.5 + 1.5 + 2.5)
  }
}

TEST_CASE(
    "a rank killed by SIGKILL gives the others CommError naming group, operation and number, in "
    "one line") {
  for (const int world : {2, 3}) {
    Job job(world, "kill");
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

TEST_CASE(
    "a rank that aborts ends at once with its own error, and so do the ranks that wait for it") {
  Job job(2, "abort");
  CHECK(job.wait(1) == "exit code 74");
  CHECK(job.output(1) == "rank 1 lost its disk\n");
  CHECK(job.wait(0) == "exit code 76");
  CHECK(job.output(0).find("Timed out") == std::string::npos);
}

}  // namespace mm::dist
