#include "lib/probe/collective_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace mm::probe {
namespace {

std::vector<uint64_t> sizes(const BenchOptions& options) {
  std::vector<uint64_t> all;
  double bytes = static_cast<double>(options.min_bytes);
  while (bytes <= static_cast<double>(options.max_bytes) && all.size() < 64) {
    all.push_back(static_cast<uint64_t>(bytes));
    bytes *= std::max(options.factor, 1.01);
  }
  return all;
}

// Elements of the larger buffer: a multiple of the ranks, at least one for each.
size_t rounded_count(uint64_t bytes, int world) {
  const size_t n = static_cast<size_t>(world);
  return std::max<size_t>(bytes / sizeof(float) / n, 1) * n;
}

size_t printed_count(const CollectiveCall& call, int world) {
  switch (call.collective) {
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return call.count / static_cast<size_t>(world);
    default:
      return call.count;
  }
}

uint64_t count_wrong(const CollectiveCall& call, CollectiveBackend& backend, int world, int rank) {
  std::vector<float> input(input_count(call, world)), output(output_count(call, world));
  for (size_t i = 0; i < input.size(); ++i) input[i] = input_value(rank, i);
  backend.put(call, input);
  backend.run(call, 1);
  backend.get(call, output);
  uint64_t wrong = 0;
  for (size_t i = 0; i < output.size(); ++i) {
    const Wanted wanted = output_value(call, world, rank, i);
    wrong += wanted.defined && output[i] != wanted.value ? 1 : 0;
  }
  return wrong;
}

BenchTiming time_call(const CollectiveCall& call, const BenchOptions& options,
                      CollectiveBackend& backend, int world, int rank) {
  BenchTiming timing;
  if (options.check) timing.wrong = count_wrong(call, backend, world, rank);
  // Zeros, so that sums of sums stay numbers however often it runs.
  backend.put(call, std::vector<float>(input_count(call, world), 0.0F));
  backend.run(call, options.warm_up);
  const double start_s = system_clock().monotonic_s();
  backend.run(call, options.iterations);
  timing.seconds = (system_clock().monotonic_s() - start_s) / options.iterations;
  return timing;
}

Json timing_json(const BenchTiming& timing) {
  return {{"seconds", timing.seconds}, {"wrong", timing.wrong}};
}

// Sums this rank's timing into a group's row; divided later.
void add(const Json& json, BenchTiming& timing) {
  timing.seconds += json.at("seconds").get<double>();
  timing.wrong += json.at("wrong").get<uint64_t>();
}

void finish(BenchTiming& timing, const BenchOptions& options, int ranks, uint64_t bytes) {
  timing.seconds /= ranks;
  timing.bandwidth =
      bandwidth(options.collective, ranks, static_cast<double>(bytes), timing.seconds);
}

void add_rank(const Json& json, BenchGroup& group) {
  const Json& rows = json.at("rows");
  if (group.rows.empty()) group.rows.resize(rows.size());
  for (size_t i = 0; i < rows.size() && i < group.rows.size(); ++i) {
    BenchRow& row = group.rows[i];
    row.bytes = rows[i].at("bytes").get<uint64_t>();
    row.count = rows[i].at("count").get<size_t>();
    add(rows[i].at("out_of_place"), row.out_of_place);
    if (rows[i].at("in_place").is_null()) continue;
    if (!row.in_place) row.in_place.emplace();
    add(rows[i].at("in_place"), *row.in_place);
  }
}

void finish_group(const BenchOptions& options, BenchGroup& group) {
  std::vector<std::pair<double, double>> points;
  const int ranks = static_cast<int>(group.ranks.size());
  for (BenchRow& row : group.rows) {
    finish(row.out_of_place, options, ranks, row.bytes);
    if (row.in_place) finish(*row.in_place, options, ranks, row.bytes);
    points.emplace_back(static_cast<double>(row.bytes), row.out_of_place.seconds);
  }
  group.fit = fit_latency(points);
}

double average(const BenchReport& report) {
  double sum = 0;
  int count = 0;
  for (const BenchGroup& group : report.groups) {
    for (const BenchRow& row : group.rows) {
      sum += row.out_of_place.bandwidth.bus_gb_s;
      ++count;
      if (!row.in_place) continue;
      sum += row.in_place->bandwidth.bus_gb_s;
      ++count;
    }
  }
  return count == 0 ? 0 : sum / count;
}

}  // namespace

int group_of(const std::string& group_by, const std::vector<std::string>& hosts, int rank) {
  if (group_by == "all") return 0;
  std::map<std::string, int> order, seen;
  int local = 0;
  for (int r = 0; r <= rank; ++r) {
    const std::string& host = hosts[static_cast<size_t>(r)];
    order.emplace(host, static_cast<int>(order.size()));
    local = seen[host]++;
  }
  return group_by == "node" ? order[hosts[static_cast<size_t>(rank)]] : local;
}

std::vector<BenchRow> run_bench(const BenchOptions& options, CollectiveBackend& backend,
                                const std::vector<int>& members, int rank) {
  const int world = static_cast<int>(members.size());
  const int own =
      static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
  backend.reserve(rounded_count(options.max_bytes, world), world);
  std::vector<BenchRow> rows;
  for (const uint64_t bytes : sizes(options)) {
    CollectiveCall call{.collective = options.collective, .count = rounded_count(bytes, world)};
    BenchRow row{.bytes = call.count * sizeof(float), .count = printed_count(call, world)};
    row.out_of_place = time_call(call, options, backend, world, own);
    if (backend.can_in_place(options.collective)) {
      call.in_place = true;
      row.in_place = time_call(call, options, backend, world, own);
    }
    rows.push_back(row);
  }
  return rows;
}

BenchReport gather_bench(const BenchOptions& options, const std::string& group_by,
                         const CollectiveBackend& backend, const std::vector<BenchRow>& own,
                         RankStar& star) {
  Json rows = Json::array();
  for (const BenchRow& row : own)
    rows.push_back({{"bytes", row.bytes},
                    {"count", row.count},
                    {"out_of_place", timing_json(row.out_of_place)},
                    {"in_place", row.in_place ? timing_json(*row.in_place) : Json(nullptr)}});
  BenchReport report{.options = options,
                     .backend = backend.name(),
                     .version = backend.version(),
                     .group_by = group_by,
                     .hosts = star.hosts()};
  const auto all = star.all_gather(Json{{"rows", rows}, {"device", backend.device()}}.dump());
  for (int rank = 0; rank < star.world(); ++rank) {
    const Json json = parse_json(all[static_cast<size_t>(rank)], "measurements of a rank");
    report.devices.push_back(json.at("device").get<std::string>());
    const auto group = static_cast<size_t>(group_of(group_by, report.hosts, rank));
    if (report.groups.size() <= group) report.groups.resize(group + 1);
    report.groups[group].ranks.push_back(rank);
    report.groups[group].hosts.push_back(report.hosts[static_cast<size_t>(rank)]);
    add_rank(json, report.groups[group]);
  }
  for (BenchGroup& group : report.groups) finish_group(options, group);
  report.average_bus_gb_s = average(report);
  report.findings = judge_bench(report);
  return report;
}

}  // namespace mm::probe
