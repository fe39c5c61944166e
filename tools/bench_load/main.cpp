// bench_load SET...: one epoch of each packed set through the loader, in samples per second of
// processor time. Nothing is asserted by time.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/data/loader.h"
#include "tools/bench_load/limits.h"
#include "tools/bench_load/waits.h"

namespace {

namespace fs = std::filesystem;
using namespace mm::bench;

struct Arguments {
  std::vector<fs::path> sets;
  fs::path files, cache;
  int threads = 1, batch = 32, rounds = 3, repeat = 1, side = 336, epochs = 4;
  bool verify_first = false;
  double compute_ms = 0;
  bool json = false;
};

mm::data::LoaderOptions options_for(const Arguments& a, const mm::data::Dataset& set) {
  mm::data::LoaderOptions options;
  const auto longest = static_cast<int32_t>(set.manifest().counts.longest);
  options.plan = {.seed = 1,
                  .sequence_length = longest,
                  .packs_per_step = a.batch,
                  .packing = mm::data::Packing::kNone};
  options.threads = a.threads;
  return options;
}

/// All epochs by one loader, opening included.
void load_all(const Arguments& a, const fs::path& directory, const std::string& cache, Row& row) {
  const double begin = mm::system_clock().monotonic_s();
  const auto set = mm::data::Dataset::open(directory);
  if (!cache.empty()) set->use_cache({.tiers = {{cache, uint64_t{1} << 40}}});
  if (a.verify_first) set->verify_reads(mm::data::VerifyReads::kFirst);
  mm::data::Loader loader(*set, options_for(a, *set));
  row.samples = 0;
  while (row.samples < set->rows() * static_cast<uint64_t>(a.epochs)) {
    const auto step = loader.next();
    if (row.samples == 0) row.first_batch_ms = 1e3 * (mm::system_clock().monotonic_s() - begin);
    for (const auto& batch : step.micro_batches) row.samples += batch.sample_ids.size();
  }
}

Row load(const Arguments& a, const fs::path& directory, const std::string& cache) {
  const auto set = mm::data::Dataset::open(directory);
  Row best{.what = "load",
           .system = cache.empty() ? "mmkit loader" : "mmkit loader, cached",
           .storage = set->manifest().pictures.storage};
  for (int round = 0; round < a.rounds; ++round) {
    Row row = best;
    row.spent = spend([&] { load_all(a, directory, cache, row); });
    if (round == 0 || row.spent.cpu_s < best.spent.cpu_s) best = row;
  }
  uint64_t bytes = 0;
  for (const auto& shard : set->manifest().shards) bytes += shard.file.bytes;
  best.bytes_sample = static_cast<double>(bytes) / static_cast<double>(set->rows());
  best.limit_cpu_s = load_limit_cpu_s(*set);
  for (int round = 1; round < a.rounds; ++round)
    best.limit_cpu_s = std::min(best.limit_cpu_s, load_limit_cpu_s(*set));
  best.limit_cpu_s *= a.epochs;
  return best;
}

int run(int argc, char** argv) {
  Arguments a;
  CLI::App app("Samples loaded per second and core; the least processor time of several rounds.");
  app.add_option("sets", a.sets, "packed data sets")->required()->check(CLI::ExistingDirectory);
  app.add_option("--files", a.files, "folder of pictures: load them without packing too");
  app.add_option("--cache", a.cache, "folder for a node cache: load through it too");
  app.add_option("--side", a.side, "pixels, for --files")->capture_default_str();
  app.add_option("--repeat", a.repeat, "times, for --files")->capture_default_str();
  app.add_option("--threads", a.threads)->capture_default_str();
  app.add_option("--batch", a.batch, "samples of a step")->capture_default_str();
  app.add_option("--rounds", a.rounds)->capture_default_str();
  app.add_option("--epochs", a.epochs, "by one loader, in a round")->capture_default_str();
  app.add_flag("--verify-first", a.verify_first, "checksums at the first read of a sample only");
  app.add_option("--compute-ms", a.compute_ms,
                 "print instead what a consumer that computes so long a step waits: from --files, "
                 "from the first set, from --cache")
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", a.json, "a JSON line a row");
  CLI11_PARSE(app, argc, argv);
  if (a.compute_ms > 0) {
    const WaitOptions waits{.set = a.sets.at(0),
                            .files = a.files,
                            .cache = a.cache,
                            .compute_ms = a.compute_ms,
                            .batch = a.batch,
                            .threads = a.threads,
                            .side = a.side,
                            .repeat = a.repeat};
    print(measure_waits(waits), waits);
    return 0;
  }
  std::vector<Row> rows;
  for (const fs::path& set : a.sets) {
    rows.push_back(load(a, set, ""));
    if (!a.cache.empty()) rows.push_back(load(a, set, a.cache));
  }
  if (!a.files.empty()) rows.push_back(load_files(a.files, a.side, a.repeat));
  if (!a.json) {
    fmt::print(
        "{}; {} threads, batches of {}; limit: reading the shards from the page cache once, and "
        "decoding what is JPEG\n",
        hardware(), a.threads, a.batch);
  }
  print(rows, a.json);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const mm::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return static_cast<int>(e.exit_code());
  }
}
