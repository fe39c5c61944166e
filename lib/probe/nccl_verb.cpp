#include "lib/probe/nccl_verb.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/base/exit_code.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/probe/interface_choice.h"
#include "lib/probe/nccl_backend.h"
#include "lib/probe/pair_transport.h"

namespace mm::probe {
namespace {

std::vector<int> members_of(const std::string& group_by, const std::vector<std::string>& hosts,
                            int rank) {
  std::vector<int> members;
  const int group = group_of(group_by, hosts, rank);
  for (int r = 0; r < static_cast<int>(hosts.size()); ++r)
    if (group_of(group_by, hosts, r) == group) members.push_back(r);
  return members;
}

// The user's interface, else the one with the way to rank 0.
std::string address_for(const NcclVerbOptions& options, const RankEnv& ranks,
                        const RankStar& star) {
  const std::string setting =
      options.interface.empty() ? env::get("NCCL_SOCKET_IFNAME").value_or("") : options.interface;
  if (setting.empty()) return star.own_address();
  const InterfaceChoice choice =
      choose_interface(local_interfaces(), setting, static_cast<int>(ranks.hosts.size()));
  for (const std::string& warning : choice.warnings) log::warn("probe", warning);
  return choice.chosen.address;
}

// Measures, or says on all ranks why that failed; the ranks stay together in any case.
BenchReport measure(const NcclVerbOptions& options, const BackendSeat& seat,
                    const MakeBackend& make_backend, RankStar& star) {
  std::unique_ptr<CollectiveBackend> backend;
  std::vector<BenchRow> rows;
  std::string failure;
  try {
    backend = make_backend(seat, star);
    rows = run_bench(options.bench, *backend, seat.members, star.rank());
  } catch (const CommError& error) {
    failure = error.what();
  }
  // The slowest group may measure for minutes after the first is done, or hang until its deadline.
  star.set_timeout(600 + 2 * options.timeout_s);
  try {
    star.agree(failure);
    return gather_bench(options.bench, options.group_by, *backend, rows, star);
  } catch (const CommError& error) {
    BenchReport report{.options = options.bench,
                       .backend = options.backend,
                       .group_by = options.group_by,
                       .hosts = star.hosts(),
                       .failure = error.what()};
    report.findings = judge_bench(report);
    return report;
  }
}

// Members stand for ranks; a report speaks of hosts.
void to_hosts(const std::vector<std::string>& members, const std::vector<std::string>& hosts,
              health::Finding& finding) {
  for (std::string& host : finding.hosts) {
    const auto member = std::find(members.begin(), members.end(), host);
    if (member != members.end()) host = hosts[static_cast<size_t>(member - members.begin())];
  }
  finding.hosts = once_each(finding.hosts);
}

// A collective is as slow as its slowest link and does not say which one that is: two rounds of
// pairs over the same network do. Links that went away meanwhile are told in any case.
void name_links(const BackendSeat& seat, PairTransport& links, BenchReport& report) {
  const auto members = member_names(report.hosts);
  const bool slow =
      std::any_of(report.findings.begin(), report.findings.end(),
                  [](const health::Finding& f) { return f.code == "F06" || f.code == "F07"; });
  std::vector<health::Finding> named;
  if (slow) {
    named = run_pairs(members, {seat.interface}, {}, [&](const Slot& slot, int rail) {
              return links.measure(slot, rail);
            }).findings;
  } else {
    named = judge_losses(members, seat.interface, links.losses(0));
  }
  for (health::Finding& finding : named) {
    to_hosts(members, report.hosts, finding);
    report.findings.push_back(
        finding.code.empty()
            ? health::not_checked("links", "pairs of ranks over TCP show no slow one")
            : std::move(finding));
  }
}

ExitCode code_of(const BenchReport& report) {
  if (!report.failure.empty()) return ExitCode::kPeerLost;
  return any_bad(report.findings) ? ExitCode::kUnhealthy : ExitCode::kDone;
}

void print(const NcclVerbOptions& options, const BenchReport& report) {
  const std::string json = bench_json(report).dump(2) + "\n";
  if (!options.report.empty()) write_file_atomic(options.report, json);
  fmt::print("{}", options.json ? json : bench_text(report));
}

}  // namespace

Json options_json(const NcclVerbOptions& o) {
  const BenchOptions& b = o.bench;
  return {{"collective", word(b.collective)},
          {"min_bytes", b.min_bytes},
          {"max_bytes", b.max_bytes},
          {"factor", b.factor},
          {"iterations", b.iterations},
          {"warm_up", b.warm_up},
          {"check", b.check},
          {"expected_gb_s", b.expected_gb_s ? Json(*b.expected_gb_s) : Json(nullptr)},
          {"tolerance", b.tolerance},
          {"group_by", o.group_by},
          {"directory", o.directory},
          {"interface", o.interface},
          {"backend", o.backend},
          {"report", o.report},
          {"timeout_s", o.timeout_s},
          {"json", o.json}};
}

NcclVerbOptions options_from_json(const Json& json) {
  NcclVerbOptions o;
  BenchOptions& b = o.bench;
  b.collective = collective_of(json.at("collective").get<std::string>()).value();
  b.min_bytes = json.at("min_bytes");
  b.max_bytes = json.at("max_bytes");
  b.factor = json.at("factor");
  b.iterations = json.at("iterations");
  b.warm_up = json.at("warm_up");
  b.check = json.at("check");
  if (!json.at("expected_gb_s").is_null()) b.expected_gb_s = json.at("expected_gb_s").get<double>();
  b.tolerance = json.at("tolerance");
  o.group_by = json.at("group_by");
  o.directory = json.at("directory");
  o.interface = json.at("interface");
  o.backend = json.at("backend");
  o.report = json.at("report");
  o.timeout_s = json.at("timeout_s");
  o.json = json.at("json");
  return o;
}

int run_nccl_verb(const NcclVerbOptions& options, const MakeBackend& make_backend) {
  const RankEnv ranks = read_rank_env();
  RankStar star =
      RankStar::join(ranks, {.directory = options.directory, .timeout_s = options.timeout_s});
  BackendSeat seat{.members = members_of(options.group_by, star.hosts(), star.rank()),
                   .rank = star.rank(),
                   .local_rank = ranks.local_rank,
                   .address = address_for(options, ranks, star),
                   .timeout_s = options.timeout_s};
  seat.interface = interface_with(seat.address).value_or("the collective's network");
  // Before the collective, so that its time is watched too.
  PairTransport links({.rails = {{seat.interface, seat.address}},
                       .bytes = uint64_t{4} << 20,
                       .pings = 20,
                       .timeout_s = 3},
                      star);
  BenchReport report = measure(options, seat, make_backend, star);
  if (star.world() > 1) name_links(seat, links, report);
  if (star.rank() == 0) print(options, report);
  star.barrier();
  return static_cast<int>(code_of(report));
}

std::unique_ptr<CollectiveBackend> make_nccl_backend(const BackendSeat& seat, RankStar& star) {
  NcclOptions options{.device = seat.local_rank,
                      .world = static_cast<int>(seat.members.size()),
                      .timeout_s = seat.timeout_s};
  if (const auto name = env::get("MMPROBE_NCCL")) options.nccl_library = *name;
  if (const auto name = env::get("MMPROBE_CUDART")) options.cudart_library = *name;
  for (size_t i = 0; i < seat.members.size(); ++i)
    if (seat.members[i] == seat.rank) options.rank = static_cast<int>(i);
  auto backend = std::make_unique<NcclBackend>(options);
  // Each group's first rank names it; all learn all names.
  const auto ids = star.all_gather(options.rank == 0 ? backend->unique_id() : "");
  backend->connect(ids[static_cast<size_t>(seat.members.front())]);
  return backend;
}

}  // namespace mm::probe
