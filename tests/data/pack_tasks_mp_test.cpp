// Several processes pack one data set.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/base/random.h"
#include "lib/data/bad_sample_ledger.h"
#include "lib/data/dataset.h"
#include "lib/data/verify_dataset.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kDeadline{60};

/// Exit code of a child, or -signal; nothing while it runs.
std::optional<int> ended(pid_t child, int options = WNOHANG) {
  int status = 0;
  if (waitpid(child, &status, options) != child) return std::nullopt;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// One task in a process of its own: 0 it wrote the manifest, 10 another did, 65 bad data, 1 else.
pid_t start_task(const PackOptions& options, PackRun run, int task, int tasks) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    run.share = {task, tasks};
    const PackResult result = pack_dataset(options, run);
    _exit(result.by_other || result.was_there ? 10 : 0);
  } catch (const mm::DataError&) {
    _exit(65);
  } catch (const std::exception& error) {
    fmt::print(stderr, "task {}: {}\n", task, error.what());
    _exit(1);
  }
}

std::vector<pid_t> start_tasks(const PackOptions& options, const PackRun& run, int tasks) {
  std::vector<pid_t> children;
  for (int i = 0; i < tasks; ++i) children.push_back(start_task(options, run, i, tasks));
  return children;
}

/// Exit codes, sorted; kills what outlives the deadline.
std::vector<int> wait_all(const std::vector<pid_t>& children) {
  const auto end = Clock::now() + kDeadline;
  std::vector<int> codes;
  for (const pid_t child : children) {
    std::optional<int> code;
    while (!(code = ended(child)) && Clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (!code) {
      kill(child, SIGKILL);
      code = ended(child, 0);
    }
    codes.push_back(*code);
  }
  std::sort(codes.begin(), codes.end());
  return codes;
}

struct Fixture {
  TempDir dir;
  PackOptions options;
  std::map<std::string, std::string> expected;

  explicit Fixture(uint32_t rows) {
    auto all = good_rows(rows);
    all[rows / 2].first = "truncated.jpg";
    write_jsonl(dir / "in.jsonl", all);
    options = toy_options(dir / "in.jsonl");
    pack_dataset(options, {.output = dir / "one", .threads = 1});
    expected = contents(dir / "one");
  }
};

}  // namespace

TEST_CASE(
    "pack tasks: any number of tasks give the bytes of one, one of them writes the manifest") {
  Fixture f(700);
  for (const int tasks : {2, 3, 5}) {
    const PackRun run{.output = f.dir / fmt::format("set{}", tasks), .threads = 1};
    std::vector<int> wanted(static_cast<size_t>(tasks), 10);
    wanted[0] = 0;
    CHECK(wait_all(start_tasks(f.options, run, tasks)) == wanted);
    CHECK(contents(run.output) == f.expected);
    CHECK(!fs::exists(run.output.string() + ".partial"));
    CHECK(!fs::exists(run.output.string() + ".partial.done"));
  }
}

TEST_CASE("pack tasks: one task alone of a job of eight does all the work") {
  Fixture f(700);
  const PackRun run{.output = f.dir / "set", .threads = 2, .share = {5, 8}};
  const PackResult result = pack_dataset(f.options, run);
  CHECK(!result.by_other);
  CHECK(contents(run.output) == f.expected);
}

TEST_CASE("pack tasks: killed at any time and started again with other counts, the same bytes") {
  Fixture f(800);
  const char* more = std::getenv("MM_LONG");
  const int trials = more != nullptr && *more == '1' ? 60 : 4;
  const mm::Philox random(11, "kill times");
  int killed = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const PackRun run{.output = f.dir / fmt::format("set {}", trial), .threads = 1};
    for (int start = 0; start < 3; ++start) {
      const auto draw = random.block(static_cast<uint64_t>(3 * trial + start));
      const auto tasks = start_tasks(f.options, run, 1 + static_cast<int>(draw[0] % 4));
      for (size_t i = 0; i < tasks.size(); ++i) {
        std::this_thread::sleep_for(std::chrono::microseconds(draw[1 + i % 3] % 40'000));
        kill(tasks[i], SIGKILL);
        killed += ended(tasks[i], 0) == -SIGKILL;
      }
    }
    for (const int code : wait_all(start_tasks(f.options, run, 1 + trial % 3)))
      CHECK((code == 0 || code == 10));
    CHECK(contents(run.output) == f.expected);
    CHECK(!fs::exists(run.output.string() + ".partial"));
  }
  CHECK(killed > trials);
}

TEST_CASE("pack tasks: the others take over from one that is killed while they run") {
  Fixture f(1200);
  const PackRun run{.output = f.dir / "set", .threads = 1};
  const auto tasks = start_tasks(f.options, run, 3);
  const auto begun = [&] { return fs::exists(f.dir / "set.partial/units/unit-000000.mmu"); };
  const auto end = Clock::now() + kDeadline;
  while (!begun() && !fs::exists(run.output) && Clock::now() < end) std::this_thread::yield();
  kill(tasks[1], SIGKILL);
  const auto codes = wait_all(tasks);
  CHECK(codes[0] == -SIGKILL);
  CHECK(codes[2] == 10);
  CHECK(contents(run.output) == f.expected);
}

TEST_CASE("pack tasks: one that is stopped is taken for dead, and does no harm when it goes on") {
  Fixture f(1200);
  const PackRun run{.output = f.dir / "set", .threads = 1, .dead_after_s = 0.4};
  const auto tasks = start_tasks(f.options, run, 2);
  const auto end = Clock::now() + kDeadline;
  while (!fs::exists(f.dir / "set.partial/claims/unit-000001.0") && !fs::exists(run.output) &&
         Clock::now() < end) {
    std::this_thread::yield();
  }
  kill(tasks[1], SIGSTOP);
  CHECK(wait_all({tasks[0]})[0] % 10 == 0);
  CHECK(contents(run.output) == f.expected);
  kill(tasks[1], SIGCONT);
  CHECK(wait_all({tasks[1]})[0] == 10);
  CHECK(contents(run.output) == f.expected);
}

TEST_CASE("pack tasks: too many bad samples end all of them alike, and a higher limit goes on") {
  Fixture f(300);
  PackRun run{.output = f.dir / "set", .threads = 1, .bad_limit = 0.001};
  CHECK(wait_all(start_tasks(f.options, run, 3)) == std::vector<int>{65, 65, 65});
  CHECK(!fs::exists(run.output));
  run.bad_limit = 0.01;
  CHECK(wait_all(start_tasks(f.options, run, 2)) == std::vector<int>{0, 10});
  CHECK(contents(run.output) == f.expected);
}

TEST_CASE("pack: the manifest proves that no row is lost, and verify checks it") {
  Fixture f(300);
  const SourceRows rows = Dataset::open(f.dir / "one")->manifest().source_rows;
  CHECK(rows.count == 300);
  CHECK(verify_dataset(f.dir / "one").sound());
  // A manifest that promises another row than the ledger has.
  auto ledger = read_ledger(f.dir / "one/ledger.jsonl");
  REQUIRE(ledger.size() == 1);
  ledger[0].key = "other";
  write_ledger(f.dir / "one/ledger.jsonl", ledger);
  DatasetManifest manifest = read_manifest(f.dir / "one");
  manifest.ledger = describe_file(f.dir / "one", "ledger.jsonl");
  mm::write_file_atomic(f.dir / "one/manifest.json", to_json(manifest).dump(2));
  const VerifyReport report = verify_dataset(f.dir / "one");
  REQUIRE(report.problems == 1);
  CHECK(report.named[0].find("the source had 300 rows") != std::string::npos);
}
