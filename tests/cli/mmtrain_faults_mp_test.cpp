// Ranks that die, get signals, and start again: real processes.
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <sstream>

#include "lib/base/verdict.h"
#include "lib/ckpt/commit.h"
#include "lib/run/sample_ledger.h"
#include "tests/cli/mmtrain_process.h"
#include "tests/run/tiny_diffusion.h"

using namespace mm;
using namespace mm::test;
using mm::data::test::TempDir;

namespace {

bool same_bits(const std::map<std::string, at::Tensor>& a,
               const std::map<std::string, at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, value] : a) {
    if (!b.contains(name) || !value.equal(b.at(name))) return false;
  }
  return true;
}

/// (stage, epoch, sample) in ledger order of steps.
std::multiset<std::tuple<int64_t, std::string, uint64_t>> ledger(const std::filesystem::path& run) {
  std::multiset<std::tuple<int64_t, std::string, uint64_t>> rows;
  for (const run::LedgerRow& row : run::read_ledger(run)) {
    for (uint64_t sample : row.samples) rows.insert({row.step, row.stage, sample});
  }
  return rows;
}

/// Process ids of the ranks, in rank order, from the launcher's children.
std::vector<pid_t> rank_pids(pid_t launcher) {
  std::istringstream in(read_file("/proc/" + std::to_string(launcher) + "/task/" +
                                  std::to_string(launcher) + "/children"));
  std::vector<pid_t> pids;
  for (pid_t pid; in >> pid;) pids.push_back(pid);
  return pids;
}

}  // namespace

TEST_CASE("2 ranks over Gloo in fp32 equal 1 rank to the oracles' tolerance") {
  TempDir dir;
  write_recipe(dir.path());
  CHECK(launch(dir.path(), "two", 2).wait().status.ok());
  CHECK(launch(dir.path(), "one", 1).wait().status.ok());
  const auto one = newest_tensors(dir / "one"), two = newest_tensors(dir / "two");
  for (const auto& [name, value] : one) {
    if (name.starts_with("optimizer.") || name.ends_with("k_proj.bias")) continue;
    CHECK_MESSAGE(
        (value - two.at(name)).norm().item<double>() <= 1e-4 * value.norm().item<double>() + 1e-7,
        name);
  }
}

TEST_CASE(
    "a rank killed with -9 at any step: 76, the verdict names it, and the resumed run is "
    "bit-equal") {
  TempDir dir;
  write_recipe(dir.path());
  CHECK(launch(dir.path(), "whole", 2).wait().status.ok());
  for (const int step : {1, 4, 8}) {
    const std::string name = "killed" + std::to_string(step);
    const Ended killed =
        launch(dir.path(), name, 2, {}, {"MM_FAULT=step@1:" + std::to_string(step)}).wait();
    CHECK(killed.status.code == 76);
    const auto verdict = read_verdict(dir / (name + "/verdict.json"));
    REQUIRE(verdict);
    CHECK(verdict->rank == 1);
    CHECK(verdict->signal == SIGKILL);
    CHECK(!verdict->host.empty());
    CHECK(launch(dir.path(), name, 2).wait().status.ok());
    CHECK_MESSAGE(same_bits(newest_tensors(dir / "whole"), newest_tensors(dir / name)), step);
    CHECK(ledger(dir / name) == ledger(dir / "whole"));
  }
}

TEST_CASE("a diffusion run killed with -9: the resumed one is bit-equal, its average included") {
  TempDir dir;
  run::test::tiny_diffusion_recipe(dir.path());
  std::string text = read_file(dir / "diffusion.toml");
  text.replace(text.find("float64"), 7, "fp32");
  std::ofstream(dir / "recipe.toml")
      << text << "[checkpoint]\nevery_steps = 3\n[comm]\ntimeout_s = 20\n";
  CHECK(launch(dir.path(), "whole", 2).wait().status.ok());
  const Ended killed = launch(dir.path(), "killed", 2, {}, {"MM_FAULT=step@1:5"}).wait();
  CHECK(killed.status.code == 76);
  CHECK(launch(dir.path(), "killed", 2).wait().status.ok());
  const auto whole = newest_tensors(dir / "whole");
  CHECK(same_bits(whole, newest_tensors(dir / "killed")));
  CHECK(ledger(dir / "killed") == ledger(dir / "whole"));
  CHECK(std::ranges::any_of(whole, [](const auto& t) { return t.first.starts_with("ema."); }));
}

TEST_CASE(
    "C44: killed at every named point of a save, on either rank, the next start goes on from a "
    "whole checkpoint to the same bits") {
  TempDir dir;
  write_recipe(dir.path());
  CHECK(launch(dir.path(), "whole", 2).wait().status.ok());
  int run = 0;
  for (const std::string_view point : ckpt::fault_points()) {
    // Rank 1 writes a shard only; the second save is hit, so that an older one exists.
    const int rank = ++run % 2 == 0 && point.starts_with("file.") ? 1 : 0;
    const std::string name = "save" + std::to_string(run);
    const Ended killed =
        launch(dir.path(), name, 2, {}, {fmt::format("MM_FAULT={}@{}:2", point, rank)}).wait();
    if (killed.status.ok()) continue;  // a point that two saves do not reach twice
    CHECK_MESSAGE(killed.status.code == 76, point);
    CHECK_MESSAGE(launch(dir.path(), name, 2).wait().status.ok(), point);
    CHECK_MESSAGE(same_bits(newest_tensors(dir / "whole"), newest_tensors(dir / name)), point);
  }
}

TEST_CASE(
    "C61: SIGTERM to one rank, then SIGUSR1 to the launcher: all save the same step, exit 75, and "
    "go on") {
  TempDir dir;
  write_recipe(dir.path());
  CHECK(launch(dir.path(), "whole", 2, {"--set", "stage.1.steps=400"}).wait().status.ok());
  const auto steps = [&] { return run::read_metrics(dir / "run").size(); };
  std::string run_id;
  for (const bool to_launcher : {false, true}) {
    const size_t before = steps();
    Mmtrain job = launch(dir.path(), "run", 2, {"--set", "stage.1.steps=400"});
    wait_until([&] { return steps() >= before + 7; }, "no progress");
    if (to_launcher) {
      kill(job.child().pid(), SIGUSR1);
      kill(job.child().pid(), SIGUSR1);
    } else {
      kill(rank_pids(job.child().pid()).at(1), SIGTERM);
    }
    const Ended ended = job.wait();
    CHECK(ended.status.code == 75);
    const state::Checkpoint checkpoint = state::open_checkpoint(dir / "run");
    CHECK(checkpoint.manifest.step == run::read_metrics(dir / "run").back().step);
    const std::string id = checkpoint.manifest.state.at("run_id");
    if (!run_id.empty()) CHECK(id == run_id);
    run_id = id;
    CHECK(read_verdict(dir / "run/verdict.json")->code == 75);
  }
  CHECK(launch(dir.path(), "run", 2, {"--set", "stage.1.steps=400"}).wait().status.ok());
  CHECK(same_bits(newest_tensors(dir / "whole"), newest_tensors(dir / "run")));
  CHECK(ledger(dir / "run") == ledger(dir / "whole"));
}

TEST_CASE("a bad recipe ends all ranks with 2 and one line") {
  TempDir dir;
  write_recipe(dir.path());
  const Ended ended = launch(dir.path(), "run", 2, {"--set", "stage.0.steps=0"}).wait();
  CHECK(ended.status.code == 2);
  CHECK(ended.output.find("stage.0.steps") != std::string::npos);
}

TEST_CASE(
    "a data set with damaged samples: under the limit they keep their place with weight 0, above "
    "it all ranks end with 65") {
  TempDir dir;
  write_recipe(dir.path());
  {
    // One byte inside the first sample of a shard.
    std::string shard = read_file(dir / "data/shard-00001.mms");
    shard[shard.size() / 2] = static_cast<char>(shard[shard.size() / 2] ^ 0x40);
    std::ofstream(dir / "data/shard-00001.mms", std::ios::binary) << shard;
  }
  const Ended above = launch(dir.path(), "above", 2).wait();
  CHECK(above.status.code == 65);
  CHECK(above.output.find("bad_sample_limit") != std::string::npos);
  const Ended below =
      launch(dir.path(), "below", 2, {"--set", "loader.bad_sample_limit=0.5"}).wait();
  CHECK(below.status.ok());
  CHECK(run::read_metrics(dir / "below").size() == 9);
}
