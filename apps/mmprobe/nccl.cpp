#include <fmt/format.h>

#include <memory>

#include "apps/mmprobe/engine_library.h"
#include "apps/mmprobe/ranks.h"
#include "apps/mmprobe/some_bytes.h"
#include "apps/mmprobe/verbs.h"
#include "lib/base/error.h"
#include "lib/health/expectation.h"
#include "lib/probe/nccl_verb.h"

namespace mm::mmprobe {
namespace {

struct Options {
  probe::NcclVerbOptions verb;
  std::string collective = "all_reduce", backend = "nccl", kind;
  bool no_check = false;
  int nproc = 0;
};

std::optional<double> expected_of(const health::Expectation::Network& net,
                                  probe::Collective collective) {
  switch (collective) {
    case probe::Collective::kAllReduce:
      return net.all_reduce;
    case probe::Collective::kAllGather:
      return net.all_gather;
    case probe::Collective::kReduceScatter:
      return net.reduce_scatter;
    case probe::Collective::kAllToAll:
      return net.all_to_all;
    case probe::Collective::kBroadcast:
      return net.broadcast;
    case probe::Collective::kReduce:
      return net.reduce;
    case probe::Collective::kSendReceive:
      break;
  }
  return net.send_receive;
}

// Gloo comes with LibTorch, so it lives in a library of its own, loaded here.
int run_gloo(const probe::NcclVerbOptions& options) {
  void* symbol = nullptr;
  try {
    symbol = engine_symbol("mm_probe_engine_run");
  } catch (const UsageError& error) {
    throw UsageError("--backend gloo {}", error.what());
  }
  using Run = int (*)(const char*);
  return reinterpret_cast<Run>(symbol)(probe::options_json(options).dump().c_str());
}

int run(const Options& options) {
  if (const auto code = launch_ranks(options.nproc)) return *code;
  probe::NcclVerbOptions verb = options.verb;
  verb.bench.collective = probe::collective_of(options.collective).value();
  verb.bench.check = !options.no_check;
  verb.backend = options.backend;
  if (verb.bench.max_bytes < verb.bench.min_bytes) verb.bench.max_bytes = verb.bench.min_bytes;
  const health::Expectation expected = health::load_expectation(options.kind);
  if (!verb.bench.expected_gb_s)
    verb.bench.expected_gb_s = expected_of(expected.network, verb.bench.collective);
  if (options.backend == "gloo") return run_gloo(verb);
  return probe::run_nccl_verb(verb, probe::make_nccl_backend);
}

void add_measuring(CLI::App* verb, Options& o) {
  const char* group = "What to measure";
  probe::BenchOptions& bench = o.verb.bench;
  verb->add_option("collective", o.collective, "all_reduce, all_gather, ...")
      ->check(CLI::IsMember(probe::collective_words()))
      ->capture_default_str();
  verb->add_option("--backend", o.backend, "over GPUs or host memory")
      ->check(CLI::IsMember({"nccl", "gloo"}))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--min-bytes", bench.min_bytes, "smallest size (8M is 8 MiB)")
      ->transform(CLI::AsSizeValue(false))
      ->check(some_bytes())
      ->capture_default_str()
      ->group(group);
  verb->add_option("--max-bytes", bench.max_bytes, "largest size")
      ->transform(CLI::AsSizeValue(false))
      ->check(some_bytes())
      ->capture_default_str()
      ->group(group);
  verb->add_option("--factor", bench.factor, "from one size to the next")
      ->check(CLI::Range(1.01, 1e6))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--iterations", bench.iterations, "timed calls of each size")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--warm-up", bench.warm_up, "calls before")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str()
      ->group(group);
  verb->add_flag("--no-check", o.no_check, "do not compare results")->group(group);
  verb->add_option("--group", o.verb.group_by,
                   "who measures together: all, node (inside each), local (ranks of one local "
                   "number: the network alone)")
      ->check(CLI::IsMember({"all", "node", "local"}))
      ->capture_default_str()
      ->group(group);
}

void add_ranks(CLI::App* verb, Options& o) {
  const char* group = "Ranks";
  verb->add_option("--nproc", o.nproc, "start so many ranks on this machine")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  verb->add_option("--dir", o.verb.directory, "where rank 0 tells its port; all ranks see it")
      ->capture_default_str()
      ->group(group);
  verb->add_option("--interface", o.verb.interface, "as NCCL_SOCKET_IFNAME, for gloo")
      ->group(group);
  verb->add_option("--timeout", o.verb.timeout_s, "seconds for ranks to come, and of each call")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str()
      ->group(group);
}

}  // namespace

void add_nccl(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "nccl", "Times a collective between ranks and checks its results, in nccl-tests' columns.");
  auto o = std::make_shared<Options>();
  add_measuring(verb, *o);
  add_ranks(verb, *o);
  verb->add_option("--expect", o->verb.bench.expected_gb_s,
                   "bus bandwidth at the largest size, GB/s; below 90 % is bad")
      ->check(CLI::PositiveNumber);
  verb->add_option("--sku", o->kind, "kind of node that says what to expect");
  verb->add_option("--report", o->verb.report, "also write the JSON object to this file");
  verb->add_flag("--json", o->verb.json, "one JSON object instead of text");
  verb->footer(
      "Examples:\n"
      "  mmprobe nccl all_reduce --nproc 8 --min-bytes 8M --max-bytes 16G --sku h100-8\n"
      "  srun -N 4 --ntasks-per-node 8 mmprobe nccl all_to_all --group local --dir /store/tmp\n"
      "  mmprobe nccl all_gather --backend gloo --nproc 2 --min-bytes 4K --max-bytes 64M\n"
      "Exit codes: 0 good, 69 wrong or slow, 76 a rank or the network was lost.");
  verb->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace mm::mmprobe
