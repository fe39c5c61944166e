// Ranks that a real Slurm starts.
#include <doctest/doctest.h>

#include "tests/cli/mmtrain_process.h"
#include "tests/probe/slurm_lab.h"

using namespace mm;
using namespace mm::test;
using mm::data::test::TempDir;

namespace {

// Sums come in the same order whoever starts the ranks.
const std::string kThreads = "OMP_NUM_THREADS=1";

Ended srun(const probe::test::SlurmLab& lab, const TempDir& dir,
           const std::vector<std::string>& options, const std::string& run) {
  std::vector<std::string> command{
      "timeout", "110", "srun", "-Q", "--kill-on-bad-exit=1", "--chdir=" + dir.path().string()};
  command.insert(command.end(), options.begin(), options.end());
  for (const std::string& word :
       {std::string(MM_BIN_DIR "/mmtrain"), std::string("run"), (dir / "recipe.toml").string(),
        std::string("--run"), (dir / run).string()})
    command.push_back(word);
  const auto log = dir / (run + ".log");
  Child child =
      Child::spawn({.command = command, .environment = {lab.variables(), kThreads}, .output = log});
  const auto status = child.wait_for(120);
  REQUIRE_MESSAGE(status, "srun did not end in 120 s");
  return {*status, read_file(log)};
}

}  // namespace

TEST_CASE("Slurm: two ranks that srun starts, on one node or two, train as those of a launch do") {
  const probe::test::SlurmLab lab;
  if (!lab.ready()) {
    MESSAGE("skipped: " << lab.why_not());
    return;
  }
  TempDir dir;
  write_recipe(dir.path());
  REQUIRE(launch(dir.path(), "launched", 2, {}, {kThreads}).wait().status.ok());
  const auto wanted = newest_tensors(dir / "launched");
  REQUIRE(!wanted.empty());
  // The nodes' names are Slurm's alone and do not resolve here, so two nodes need the address.
  for (const auto& [run, options] :
       {std::pair{"one", std::vector<std::string>{"-N1", "-n2"}},
        {"two", {"-N2", "-n2", "--export=ALL,MASTER_ADDR=127.0.0.1"}}}) {
    const Ended ended = srun(lab, dir, options, run);
    REQUIRE_MESSAGE(ended.status.ok(), ended.output);
    const auto found = newest_tensors(dir / run);
    REQUIRE(found.size() == wanted.size());
    for (const auto& [name, tensor] : wanted)
      CHECK_MESSAGE(at::equal(tensor, found.at(name)), name);
    CHECK(run::read_metrics(dir / run).size() == 9);
    CHECK(std::filesystem::exists(dir / run / "ledger/rank-00001.jsonl"));
  }
}
