#include <fmt/format.h>

#include "apps/mmtrain/verbs.h"
#include "lib/base/clock.h"
#include "lib/base/launcher.h"
#include "lib/base/run_dir.h"

namespace mm::mmtrain {

namespace {

struct Options {
  int nproc = 1;
  double grace_s = 5;
  std::vector<std::string> command;
};

/// The run directory that the ranks were told (--run DIR or --run=DIR); the launcher keeps its logs
/// and verdict there.
std::string run_directory(const std::vector<std::string>& command) {
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == "--run" && i + 1 < command.size()) return command[i + 1];
    if (command[i].starts_with("--run=")) return command[i].substr(6);
  }
  return "";
}

/// The verdict of a start that ended: how the processes ended, and what the rank at fault said of
/// itself.
Verdict verdict_of(const LaunchResult& result, const RunDir& run) {
  Verdict verdict = to_verdict(result, system_clock().unix_ms());
  if (!result.first_dead || result.signal) return verdict;
  if (const auto own = read_verdict(run.rank_fault(*result.first_dead))) {
    verdict.message = own->message;
    verdict.step = own->step;
  }
  return verdict;
}

/// What an earlier start left, so that nobody reads it as this one's.
void remove_old_verdicts(const RunDir& run, int ranks) {
  std::filesystem::remove(run.verdict());
  for (int rank = 0; rank < ranks; ++rank) std::filesystem::remove(run.rank_fault(rank));
}

int run_launch(const Options& options, std::vector<std::string> command) {
  const std::string directory = run_directory(command);
  command.insert(command.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
  LaunchOptions launch_options{
      .nproc = options.nproc, .command = command, .grace_s = options.grace_s};
  std::optional<RunDir> run;
  if (!directory.empty()) {
    run = RunDir::create(directory);
    launch_options.log_dir = run->log_dir();
    remove_old_verdicts(*run, options.nproc);
  }
  const LaunchResult result = launch(launch_options);
  if (run) write_verdict(run->verdict(), verdict_of(result, *run));
  if (result.exit_code != 0)
    fmt::print(stderr, "mmtrain: {}: {}\n", exit_word(result.exit_code), result.message);
  return result.exit_code;
}

}  // namespace

void add_launch(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "launch", "Starts several ranks of a command on this machine and watches them.");
  auto options = std::make_shared<Options>();
  verb->add_option("--nproc", options->nproc, "ranks")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_option("--grace", options->grace_s,
                   "seconds that survivors of a failed rank get after SIGTERM")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  verb->add_option("command", options->command,
                   "after --: the verb that every rank runs, with its arguments")
      ->required();
  verb->footer(
      "Examples:\n"
      "  mmtrain launch --nproc 2 -- run recipes/quickstart-llava.toml --run runs/a\n"
      "  mmtrain launch --nproc 4 -- run recipe.toml --run runs/b --set run.seed=3\n"
      "Ends with 0 if all ranks do, 75 if all saved and stopped, 76 if a rank was lost; "
      "RUN/verdict.json names it.");
  verb->callback([options, &action] {
    action = [options] { return run_launch(*options, options->command); };
  });
}

}  // namespace mm::mmtrain
