#include "lib/probe/fleet_collective.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <span>

#include "lib/base/error.h"
#include "lib/base/exit_code.h"
#include "lib/base/file.h"
#include "lib/base/process.h"
#include "lib/base/text_escape.h"

namespace mm::probe {
namespace {

constexpr uint64_t kMaxTailBytes = uint64_t{64} << 10;

// So that a call that hangs leaves time to find the link that did it.
double call_timeout_s(const LinkCheckOptions& options) {
  return std::max(1.0, options.collective_timeout_s / 6);
}

std::vector<std::string> command_of(const CollectiveRun& run, const LinkCheckOptions& options,
                                    const std::filesystem::path& links) {
  std::vector<std::string> command = {options.program,
                                      "nccl",
                                      "all_reduce",
                                      "--backend",
                                      run.backend,
                                      "--group",
                                      run.group,
                                      "--min-bytes",
                                      std::to_string(options.bytes),
                                      "--max-bytes",
                                      std::to_string(options.bytes),
                                      "--iterations",
                                      "5",
                                      "--dir",
                                      links.string(),
                                      "--timeout",
                                      fmt::format("{}", call_timeout_s(options)),
                                      "--report",
                                      (links / (run.name + ".json")).string()};
  // A kind of node says what to expect within a node, not between nodes.
  if (run.group == "node" && !options.kind.empty())
    command.insert(command.end(), {"--sku", options.kind});
  if (run.group == "all" && options.expected_gb_s)
    command.insert(command.end(), {"--expect", fmt::format("{}", *options.expected_gb_s)});
  if (!options.rails.empty() && run.backend == "gloo")
    command.insert(command.end(), {"--interface", options.rails.front()});
  return command;
}

std::vector<std::string> environment_of(const CollectiveRun& run, const RankEnv& seat) {
  return {fmt::format("RANK={}", seat.rank),
          fmt::format("WORLD_SIZE={}", seat.world),
          fmt::format("LOCAL_RANK={}", seat.local_rank),
          fmt::format("LOCAL_WORLD_SIZE={}", seat.local_world),
          "SLURMD_NODENAME=" + seat.host,
          "MASTER_ADDR=" + seat.master_addr,
          "MASTER_PORT=",
          "MM_LISTEN_FD=",
          fmt::format("MM_JOB_ID={}.{}", seat.job_id, run.name)};
}

std::string own_line(const std::filesystem::path& log) {
  try {
    return last_line(log);
  } catch (const Error& error) {
    return error.what();  // how the process ended counts all the same
  }
}

CollectiveEnd run_own(const CollectiveRun& run, const LinkCheckOptions& options,
                      const RankEnv& seat, const std::filesystem::path& links) {
  const auto log = links / fmt::format("{}.rank-{}.log", run.name, seat.rank);
  CollectiveEnd end{.host = seat.host};
  try {
    Child child = Child::spawn({.command = command_of(run, options, links),
                                .environment = environment_of(run, seat),
                                .output = log});
    auto status = child.wait_for(options.collective_timeout_s);
    if (!status) {
      child.signal(SIGKILL);
      end.code = static_cast<int>(ExitCode::kOwnTimeLimit);
      end.line = fmt::format("no end within {} s", options.collective_timeout_s);
      return end;
    }
    end.code = status->code;
    end.line = status->signal != 0 ? "ended by " + status->text() : own_line(log);
  } catch (const Error& error) {
    end.code = static_cast<int>(error.exit_code());
    end.line = error.what();
  }
  return end;
}

health::Finding bad(const std::string& where, const char* what, const CollectiveEnd& end) {
  return {.level = health::Level::kBad,
          .code = "F07",
          .where = where,
          .what = what,
          .evidence = end.line};
}

}  // namespace

std::string last_line(const std::filesystem::path& log) {
  if (!std::filesystem::exists(log)) return "";
  const File file = File::open_read(log);
  const uint64_t bytes = file.size_bytes(), tail = std::min(bytes, kMaxTailBytes);
  std::string text(static_cast<size_t>(tail), '\0');
  file.read_at(bytes - tail, std::as_writable_bytes(std::span(text)));
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::vector<health::Finding> judge_ends(const std::string& name,
                                        const std::vector<CollectiveEnd>& ends) {
  const auto by_itself = [](const CollectiveEnd& end) {
    return end.code != 0 && end.code != static_cast<int>(ExitCode::kPeerLost);
  };
  const auto count = std::count_if(ends.begin(), ends.end(), by_itself);
  const auto late = std::count_if(ends.begin(), ends.end(), [](const CollectiveEnd& end) {
    return end.code == static_cast<int>(ExitCode::kOwnTimeLimit);
  });
  const auto cause = std::find_if(ends.begin(), ends.end(), by_itself);
  // All the same way: something that all lack, such as a library, or a network that nobody passes.
  if (count == static_cast<std::ptrdiff_t>(ends.size()) && late == 0)
    return {health::not_checked(name, cause->line)};
  std::vector<health::Finding> findings;
  if (count == 0 || late == count) {
    findings.push_back(bad(name, "the collective did not end", late > 0 ? *cause : ends.front()));
    findings.back().action = "see the links; run mmprobe pairs --matrix";
    return findings;
  }
  for (const CollectiveEnd& end : ends) {
    if (!by_itself(end) || end.code == static_cast<int>(ExitCode::kOwnTimeLimit)) continue;
    findings.push_back(bad(name, "could not take part in the collective", end));
    findings.back().action = "exclude the node; run mmprobe node --full on it";
    findings.back().hosts = {end.host};
  }
  return findings;
}

std::vector<health::Finding> run_collective(const CollectiveRun& run,
                                            const LinkCheckOptions& options, const RankEnv& seat,
                                            const std::filesystem::path& links, RankStar& star) {
  const auto report = links / (run.name + ".json");
  if (seat.rank == 0) std::filesystem::remove(report);
  const CollectiveEnd own = run_own(run, options, seat, links);
  // The last one may end as late as its deadline.
  star.set_timeout(options.collective_timeout_s + 60);
  std::vector<CollectiveEnd> ends;
  for (const std::string& text :
       star.all_gather(Json{{"code", own.code}, {"line", escape_text(own.line, 400)}}.dump())) {
    const Json json = parse_json(text, "end of a collective");
    ends.push_back(
        {.host = star.hosts()[ends.size()], .code = json.at("code"), .line = json.at("line")});
  }
  if (seat.rank != 0 || std::filesystem::exists(report)) return {};
  return judge_ends(run.name, ends);
}

}  // namespace mm::probe
