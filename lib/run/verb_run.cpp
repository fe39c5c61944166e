#include <filesystem>
#include <optional>

#include "lib/base/clock.h"
#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/rank_env.h"
#include "lib/base/run_dir.h"
#include "lib/base/signals.h"
#include "lib/base/verdict.h"
#include "lib/dist/gloo_group.h"
#include "lib/dist/rendezvous.h"
#include "lib/run/engine.h"
#include "lib/run/fault_point.h"
#include "lib/run/run_recipe.h"
#include "lib/run/trainer.h"

namespace mm::run {

namespace fs = std::filesystem;

namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(1e3 * seconds));
}

/// Finds the other ranks and connects two groups. `rendezvous` must outlive them.
Comm connect(const dist::Rendezvous& rendezvous, const RankEnv& ranks, const Recipe& recipe) {
  Comm comm{.rank = ranks.rank,
            .world = ranks.world,
            .local_world = ranks.local_world,
            .host = ranks.host};
  comm.data = dist::make_gloo_group(
      rendezvous, {.name = "data", .timeout = milliseconds(recipe.comm_timeout_s)});
  comm.control = dist::make_gloo_group(
      rendezvous, {.name = "control", .timeout = milliseconds(recipe.comm_timeout_s)});
  return comm;
}

dist::RendezvousOptions rendezvous_options(const RankEnv& ranks, const Recipe& recipe,
                                           const fs::path& run) {
  dist::RendezvousOptions options{.master_addr = ranks.master_addr,
                                  .port = ranks.master_port,
                                  .listen_fd = ranks.listen_fd,
                                  .rank = ranks.rank,
                                  .world = ranks.world,
                                  .job_id = ranks.job_id};
  options.timeout = milliseconds(recipe.comm_timeout_s);
  if (options.port == 0 && ranks.world > 1)
    options.port_file =
        (run / fmt::format("port-{}-{}", ranks.job_id, ranks.restart_count)).string();
  return options;
}

Resume resume_word(const std::string& word) {
  return word == "must" ? Resume::kMust : word == "never" ? Resume::kNever : Resume::kAuto;
}

ExitCode train(const Json& options, const Recipe& recipe, const RankEnv& ranks) {
  const fs::path run = options.at("run").get<std::string>();
  const StopSignals signals;
  std::optional<RunLock> lock;
  if (ranks.rank == 0)
    lock.emplace(RunLock::take(RunDir::create(run), ranks.job_id, /*wait_s=*/15));
  const dist::Rendezvous rendezvous =
      dist::Rendezvous::join(rendezvous_options(ranks, recipe, run));
  Comm comm = connect(rendezvous, ranks, recipe);
  Trainer trainer(recipe, comm,
                  {.run_directory = run,
                   .resume = resume_word(options.at("resume")),
                   .stop_after = options.at("stop_after"),
                   .allow_loss_change = options.value("allow_loss_change", false),
                   .stop_requested = [&] { return signals.requested(); },
                   .fault_hook = fault_hook(ranks.rank)});
  const ExitCode code = trainer.run();
  if (ranks.rank == 0 && code == ExitCode::kSavedRunAgain)
    log::info("run", "stopped on request; run again to go on", {{"step", trainer.global_step()}});
  return code;
}

/// What a rank that fails leaves for the launcher, and rank 0 for batch scripts without one.
void leave_verdict(const fs::path& run, const RankEnv& ranks, ExitCode code,
                   const std::string& message) {
  if (!fs::exists(run / "run.json")) return;
  const RunDir directory = RunDir::open(run);
  const Verdict verdict{.code = static_cast<int>(code),
                        .message = message,
                        .rank = message.empty() ? std::nullopt : std::optional(ranks.rank),
                        .host = message.empty() ? "" : ranks.host,
                        .unix_ms = system_clock().unix_ms()};
  if (!message.empty()) write_verdict(directory.rank_fault(ranks.rank), verdict);
  if (ranks.rank == 0) write_verdict(directory.verdict(), verdict);
}

}  // namespace

int verb_run(const Json& options) {
  const RankEnv ranks = read_rank_env();
  log::configure(
      {.level = ranks.rank == 0 ? log::Level::kInfo : log::Level::kWarn, .rank = ranks.rank});
  const fs::path run = options.at("run").get<std::string>();
  const Recipe recipe = read_run_recipe(options.at("recipe").get<std::string>(),
                                        options.at("set").get<std::vector<std::string>>(), run);
  const std::string warning = normalisation_warning(recipe.model);
  if (!warning.empty() && ranks.rank == 0) log::warn("run", warning);
  try {
    const ExitCode code = train(options, recipe, ranks);
    leave_verdict(run, ranks, code, "");
    return static_cast<int>(code);
  } catch (const Error& error) {
    leave_verdict(run, ranks, error.exit_code(), error.what());
    throw;
  }
}

}  // namespace mm::run
