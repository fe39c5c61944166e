#include <fmt/format.h>

#include <memory>

#include "apps/mmprobe/ranks.h"
#include "apps/mmprobe/some_bytes.h"
#include "apps/mmprobe/verbs.h"
#include "lib/base/exit_code.h"
#include "lib/base/file.h"
#include "lib/health/expectation.h"
#include "lib/probe/pair_transport.h"

namespace mm::mmprobe {
namespace {

struct Options {
  probe::PairOptions pairs;
  probe::TransportOptions transport;
  std::vector<std::string> rails;
  std::string directory = ".", replay, html, kind;
  double join_s = 60;
  int nproc = 0;
  bool json = false;
};

void print(const Options& o, const probe::PairReport& report) {
  if (o.json) {
    fmt::print("{}\n", probe::pairs_json(report).dump(2));
  } else {
    fmt::print("{}", probe::pairs_text(report));
  }
  if (!o.html.empty()) write_file_atomic(o.html, probe::pairs_html(report));
}

int measure(const Options& o, const probe::PairOptions& pairs) {
  const RankEnv ranks = read_rank_env();
  probe::RankStar star =
      probe::RankStar::join(ranks, {.directory = o.directory, .timeout_s = o.join_s});
  probe::TransportOptions transport = o.transport;
  transport.rails =
      probe::choose_rails(o.rails, star.own_address(), static_cast<int>(ranks.hosts.size()));
  probe::PairTransport links(transport, star);
  std::vector<std::string> names;
  for (const probe::Interface& rail : transport.rails) names.push_back(rail.name);
  const probe::PairReport report =
      run_pairs(probe::member_names(star.hosts()), names, pairs,
                [&](const probe::Slot& slot, int rail) { return links.measure(slot, rail); });
  if (star.rank() == 0) print(o, report);
  star.barrier();
  return static_cast<int>(any_bad(report.findings) ? ExitCode::kUnhealthy : ExitCode::kDone);
}

int run(const Options& o) {
  const health::Expectation expected = health::load_expectation(o.kind);
  probe::PairOptions pairs = o.pairs;
  if (!pairs.expected_gb_s) pairs.expected_gb_s = expected.network.pair_gb_s;
  if (!pairs.expected_latency_us) pairs.expected_latency_us = expected.network.pair_latency_us;
  if (!o.replay.empty()) {
    const probe::PairReport recorded = probe::read_pairs(o.replay);
    pairs.repeats = 0;  // those of the record count
    const probe::PairReport report =
        run_pairs(recorded.members, recorded.rails, pairs, probe::replay(recorded));
    print(o, report);
    return static_cast<int>(any_bad(report.findings) ? ExitCode::kUnhealthy : ExitCode::kDone);
  }
  if (const auto code = launch_ranks(o.nproc)) return *code;
  return measure(o, pairs);
}

void add_measuring(CLI::App* verb, Options& o) {
  const char* group = "What to measure";
  verb->add_flag("--matrix", o.pairs.matrix, "all pairs, not two rounds")->group(group);
  verb->add_option("--rails", o.rails,
                   "interfaces to measure by, one after another; each as NCCL_SOCKET_IFNAME")
      ->group(group);
  verb->add_option("--bytes", o.transport.bytes, "sent each way by each pair")
      ->transform(CLI::AsSizeValue(false))
      ->check(some_bytes())
      ->capture_default_str()
      ->group(group);
  verb->add_option("--pings", o.transport.pings, "round trips for the latency")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--pair-timeout", o.transport.timeout_s,
                   "seconds for a pair to meet, and without progress, until it is cut")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--repeats", o.pairs.repeats,
                   "times that suspects are measured again: slow, or coming and going?")
      ->check(CLI::Range(0, 100))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--replay", o.replay, "judge the measurements of a file instead")
      ->check(CLI::ExistingFile)
      ->group(group);
}

void add_judging(CLI::App* verb, Options& o) {
  const char* group = "How to judge";
  verb->add_option("--expect", o.pairs.expected_gb_s,
                   "GB/s; without, what the better quarter reaches")
      ->check(CLI::PositiveNumber)
      ->group(group);
  verb->add_option("--tolerance", o.pairs.tolerance, "share below which is bad")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--latency-factor", o.pairs.latency_factor,
                   "a latency above so many times the expected (and 50 us more) is bad")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--sku", o.kind, "kind of node that says what to expect")->group(group);
  verb->add_option("--html", o.html, "write a heat map, one file")->group(group);
  verb->add_flag("--json", o.json, "one JSON object instead of text")->group(group);
}

}  // namespace

void add_pairs(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "pairs", "Finds the bad node, rail or link among many in two rounds of pairs.");
  auto o = std::make_shared<Options>();
  add_measuring(verb, *o);
  add_judging(verb, *o);
  verb->add_option("--nproc", o->nproc, "start so many ranks on this machine")
      ->check(CLI::Range(1, 1024))
      ->group("Ranks");
  verb->add_option("--dir", o->directory, "where rank 0 tells its port; all ranks see it")
      ->capture_default_str()
      ->group("Ranks");
  verb->add_option("--timeout", o->join_s, "seconds for all ranks to come")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str()
      ->group("Ranks");
  verb->footer(
      "Examples:\n"
      "  srun -N 64 --ntasks-per-node 1 mmprobe pairs --rails ib0 ib1 --dir /store/tmp\n"
      "  srun -N 16 --ntasks-per-node 1 mmprobe pairs --matrix --html pairs.html\n"
      "Plain TCP, no GPU, no LibTorch; its figures compare links, they are not what NCCL reaches.\n"
      "Exit codes: 0 good, 69 a node, rail or link is bad, 76 a rank was lost.");
  verb->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace mm::mmprobe
