#include "lib/probe/fleet_links.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/probe/fleet_collective.h"
#include "lib/probe/fleet_plan.h"
#include "lib/probe/fleet_rails.h"
#include "lib/probe/interface_choice.h"
#include "tests/health/planted_node.h"
#include "tests/probe/run_mmprobe.h"
#include "tests/probe/star_threads.h"

using namespace mm::probe;
using mm::Json;
using mm::health::Finding;
using mm::health::Level;
using mm::health::test::PlantedTree;

namespace {

Finding slow_link(const std::string& a, const std::string& b, Level level = Level::kBad) {
  return {.level = level,
          .code = "F06",
          .where = a + " - " + b + " on ib0",
          .what = "link is slow",
          .hosts = {a, b}};
}

FleetReport fleet_of(int nodes, std::vector<Finding> links) {
  FleetReport report;
  for (int i = 0; i < nodes; ++i) report.nodes.push_back({.host = fmt::format("n{}", i)});
  report.links = std::move(links);
  return report;
}

std::string charged(FleetReport report) {
  charge_links(report);
  std::string text;
  for (const NodeResult& node : report.nodes)
    for (const Finding& f : node.faults)
      text += fmt::format("{} {} {}\n", node.host, level_word(f.level), f.where);
  for (const Finding& f : report.links)
    text += fmt::format("left {} {}\n", level_word(f.level), f.where);
  return text;
}

}  // namespace

TEST_CASE("fleet links: a node's own fault is charged to it, what names none stays") {
  const Finding slow = {.level = Level::kBad,
                        .code = "F06",
                        .where = "n2",
                        .what = "slow with every partner",
                        .hosts = {"n2"}};
  CHECK(charged(fleet_of(4, {slow, mm::health::ok("pairs", "good")})) ==
        "n2 BAD n2\nleft ok pairs\n");
  // Two checks that see the same fault count once.
  CHECK(charged(fleet_of(4, {slow, slow})) == "n2 BAD n2\n");
  Finding stranger = slow;
  stranger.hosts = {"x9"};
  CHECK(charged(fleet_of(2, {stranger})) == "left BAD n2\n");
  FleetReport all = fleet_of(2, {{.level = Level::kBad, .code = "F07", .where = "nccl-all"}});
  charge_links(all);
  CHECK_FALSE(all.healthy());
  CHECK(all.bad_hosts().empty());
  CHECK(fleet_text(all).ends_with("verdict 0 of 2 nodes BAD, and what joins them\n"));
}

TEST_CASE("fleet links: a bad link costs one node, and links that share an end cost that one") {
  CHECK(charged(fleet_of(4, {slow_link("n1", "n2")})) ==
        "n1 warn n1 - n2 on ib0\nn2 BAD n1 - n2 on ib0\n");
  CHECK(
      charged(fleet_of(5, {slow_link("n0", "n1"), slow_link("n1", "n4"), slow_link("n1", "n2")})) ==
      "n0 warn n0 - n1 on ib0\n"
      "n1 BAD n0 - n1 on ib0\nn1 BAD n1 - n4 on ib0\nn1 BAD n1 - n2 on ib0\n"
      "n2 warn n1 - n2 on ib0\n"
      "n4 warn n1 - n4 on ib0\n");
  // A node that is excluded anyway takes its links with it.
  FleetReport report = fleet_of(3, {slow_link("n0", "n2")});
  report.nodes[0].faults.push_back({.level = Level::kBad, .code = "F17", .where = "GPU 1"});
  CHECK(charged(report) == "n0 BAD GPU 1\nn0 BAD n0 - n2 on ib0\nn2 warn n0 - n2 on ib0\n");
  CHECK(charged(fleet_of(3, {slow_link("n0", "n1", Level::kWarn)})) ==
        "n0 warn n0 - n1 on ib0\nn1 warn n0 - n1 on ib0\n");
}

TEST_CASE("fleet collective: how processes ended says who is to blame") {
  const auto said = [](std::vector<CollectiveEnd> ends) {
    std::string text;
    for (const Finding& f : judge_ends("nccl-all", ends))
      text += fmt::format("{} {} [{}] {}: {}\n", level_word(f.level), f.code,
                          f.hosts.empty() ? "" : f.hosts.front(), f.what, f.evidence);
    return text;
  };
  const CollectiveEnd lost{.host = "n0", .code = 76, .line = "rank 2 closed the connection"};
  CHECK(said({{"n0", 69, "no NCCL"}, {"n1", 69, "no NCCL"}}) == "not checked  [] no NCCL: \n");
  CHECK(said({lost, lost, {"n2", -1, "ended by SIGSEGV"}}) ==
        "BAD F07 [n2] could not take part in the collective: ended by SIGSEGV\n");
  CHECK(said({lost, lost}) ==
        "BAD F07 [] the collective did not end: rank 2 closed the connection\n");
  CHECK(said({lost, {"n1", 124, "no end within 5 s"}}) ==
        "BAD F07 [] the collective did not end: no end within 5 s\n");
  CHECK(said({{"n0", 124, "no end within 5 s"}, {"n1", 124, "no end within 5 s"}}) ==
        "BAD F07 [] the collective did not end: no end within 5 s\n");
}

TEST_CASE("fleet collective: the last line of a log is told, however long the log is") {
  const PlantedTree tree;
  CHECK(last_line(tree.root() / "none") == "");
  for (const size_t before : {0, 10, 70'000, 3'000'000}) {
    tree.plant("log", std::string(before, '.') + "\nthe end\n\n");
    CHECK(last_line(tree.root() / "log") == "the end");
  }
  tree.plant("log", std::string(100'000, 'x'));
  CHECK(last_line(tree.root() / "log") == std::string(64 << 10, 'x'));
  tree.plant("log", "");
  CHECK(last_line(tree.root() / "log") == "");
}

TEST_CASE("fleet plan: ranks of the nodes that answered, seated by node and local rank") {
  mm::RankEnv ranks;
  ranks.hosts = {"n1", "n2", "n3"};
  ranks.ranks_per_node = {2, 2, 2};
  ranks.master_addr = "127.0.0.1";
  ranks.job_id = "77.0.0";
  const FleetPlan plan = make_plan(ranks, {true, false, true});
  CHECK(plan.hosts == std::vector<std::string>{"n1", "n3"});
  CHECK(plan.address == "127.0.0.1");
  ranks.node = 2;
  ranks.local_rank = 1;
  ranks.rank = 3;  // as a cyclic distribution has it
  const auto seat = seat_in(plan, ranks, ".links").value();
  CHECK(seat.rank == 3);
  CHECK(seat.world == 4);
  CHECK(seat.host == "n3");
  CHECK(seat.job_id == "77.0.0.links");
  CHECK(seat.master_port == 0);
  ranks.node = 1;
  CHECK_FALSE(seat_in(plan, ranks, ""));
  const PlantedTree tree;
  CHECK_FALSE(await_plan(tree.root(), "77.0.0", 0));
  leave_plan(tree.root(), plan);
  CHECK(await_plan(tree.root(), "77.0.0", 0)->ranks_per_node == plan.ranks_per_node);
  CHECK_FALSE(await_plan(tree.root(), "78.0.0", 0));
}

TEST_CASE("fleet plan: other nodes are not sent to their own loopback by a name that means it") {
  mm::RankEnv ranks;
  ranks.master_addr = "localhost";
  ranks.hosts = {"n1"};
  ranks.ranks_per_node = {1};
  CHECK(make_plan(ranks, {true}).address.starts_with("127."));
  ranks.hosts = {"n1", "n2"};
  ranks.ranks_per_node = {1, 1};
  const auto all = local_interfaces();
  const bool network = std::any_of(all.begin(), all.end(), [](const Interface& one) {
    return !one.address.starts_with("127.");
  });
  // Where there is nothing but the loopback, that is all there is.
  CHECK(make_plan(ranks, {true, true}).address.starts_with("127.") != network);
}

TEST_CASE("fleet plan: text that is no plan is refused with the reason") {
  const auto refused = [](const char* text) {
    try {
      plan_from(mm::parse_json(text, "p"), "p");
    } catch (const mm::DataError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  CHECK(refused("[]").starts_with("p: no plan of a fleet: "));
  CHECK(refused(R"({"job": "1", "address": "a", "hosts": ["x"], "ranks_per_node": []})") ==
        "p: 1 hosts, 0 numbers of ranks; expected as many, each 1 to 1024");
  CHECK(refused(R"({"job": "1", "address": "a", "hosts": ["x"], "ranks_per_node": [-4]})")
            .find("each 1 to 1024") != std::string::npos);
}

TEST_CASE("fleet links: three ranks measure pairs; a collective that nobody can run is said") {
  const PlantedTree tree;
  std::filesystem::create_directories(tree.root() / "links");
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      mm::RankEnv seat;
      seat.hosts = {"a", "b", "c"};
      seat.ranks_per_node = {1, 1, 1};
      seat.rank = seat.node = rank;
      seat.world = 3;
      seat.host = seat.hosts[static_cast<size_t>(rank)];
      seat.job_id = "t";
      LinkCheckOptions options{.timeout_s = 20};
      options.transport.bytes = 1 << 18;
      run_link_checks(options, seat, {.why_not = "no GPU"}, tree.root());
    });
  }
  for (std::thread& thread : threads) thread.join();
  FleetReport report = fleet_of(0, {});
  for (const char* host : {"a", "b", "c"}) report.nodes.push_back({.host = host});
  read_link_checks(tree.root(), {.tolerance = 0.999, .latency_factor = 1e9}, report);
  charge_links(report);
  CHECK(report.healthy());
  CHECK(report.pairs["members"] == Json::array({"a", "b", "c"}));
  CHECK(report.pairs["pairs"].size() == 3);
  CHECK(report.collectives.empty());
  REQUIRE(report.links.size() == 2);
  CHECK(report.links[1].what == "no GPU");
  CHECK(fleet_json(report)["links"].size() == 2);
}

TEST_CASE("fleet links: a rank without the wanted rail keeps nobody waiting") {
  const PlantedTree tree;
  std::filesystem::create_directories(tree.root() / "links");
  mm::RankEnv seat;
  seat.hosts = {"a", "b"};
  seat.ranks_per_node = {1, 1};
  seat.world = 2;
  seat.job_id = "t";
  const auto run = [&](int rank) {
    mm::RankEnv own = seat;
    own.rank = own.node = rank;
    own.host = own.hosts[static_cast<size_t>(rank)];
    LinkCheckOptions options{.collectives = false, .timeout_s = 20};
    if (rank == 1) options.rails = {"=no-such-if"};
    run_link_checks(options, own, {}, tree.root());
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  FleetReport report = fleet_of(0, {});
  read_link_checks(tree.root(), {}, report);
  REQUIRE(report.links.size() == 1);
  CHECK(report.links[0].level == Level::kNotChecked);
  CHECK(report.links[0].what.find("b: NCCL_SOCKET_IFNAME==no-such-if: no such interface") !=
        std::string::npos);
}

TEST_CASE("fleet links: the one node without a rail that most have is charged with it") {
  const auto offers = [](size_t nodes, const std::string& problem_of_last) {
    std::vector<std::string> all;
    for (size_t i = 0; i < nodes; ++i) {
      const std::string problem = i + 1 == nodes ? problem_of_last : "";
      const Json rails = {{{"setting", "=ib0"}, {"problem", ""}},
                          {{"setting", "=ib1"}, {"problem", problem}}};
      all.push_back(Json{{"host", fmt::format("n{}", i)}, {"rails", rails}}.dump());
    }
    return all;
  };
  const std::map<std::string, Interface> own = {{"=ib0", {.name = "ib0"}},
                                                {"=ib1", {.name = "ib1"}}};
  CHECK(judge_rails(offers(4, ""), own).rails.size() == 2);
  const AgreedRails agreed = judge_rails(offers(4, "no such interface"), own);
  CHECK(agreed.rails.size() == 1);
  CHECK(agreed.left_out == "=ib1 (n3: no such interface)");
  REQUIRE(agreed.missing.size() == 1);
  CHECK(agreed.missing[0].code == "F09");
  CHECK(agreed.missing[0].hosts == std::vector<std::string>{"n3"});
  CHECK(agreed.missing[0].what == "not there; 3 of 4 nodes have it");
  // One of two may be the one with a rail too many, and who was not told of a rail lacks nothing.
  CHECK(judge_rails(offers(2, "no such interface"), own).missing.empty());
  auto untold = offers(4, "");
  untold[3] = R"({"host": "n3", "rails": [{"setting": "=ib0", "problem": ""}]})";
  CHECK(judge_rails(untold, own).missing.empty());
  CHECK(judge_rails(untold, own).left_out == "=ib1 (n3: was not told of it)");
  // Many nodes are counted, and names that hold one another are told apart.
  std::vector<std::string> many;
  for (int i = 0; i < 30; ++i)
    many.push_back(Json{{"host", fmt::format("{}1", std::string(i + 1, 'c'))},
                        {"rails", {{{"setting", "=x"}, {"problem", "gone"}}}}}
                       .dump());
  CHECK(judge_rails(many, own).left_out.ends_with("; and 22 more nodes)"));
  CHECK(judge_rails(many, own).left_out.find("cc1: gone; ccc1: gone") != std::string::npos);
}

TEST_CASE("mmprobe fleet: recorded links go into table, exclude list, drain lines, JSON, history") {
  const PlantedTree tree;
  for (int i = 0; i < 4; ++i)
    leave_result(tree.root() / "r", {.host = fmt::format("n{}", i), .facts = Json::object()});
  tree.plant("r/links/pairs.json", R"({"members": ["n0", "n1", "n2", "n3"], "rails": ["ib0"],
    "pairs": [{"a": 0, "b": 1, "gb_s": 12, "latency_us": 9},
              {"a": 2, "b": 3, "gb_s": 5, "latency_us": 9},
              {"a": 0, "b": 2, "gb_s": 5, "latency_us": 9},
              {"a": 1, "b": 3, "gb_s": 12, "latency_us": 9}]})");
  tree.plant("r/links/nccl-node.json", R"({"schema": 1, "findings": [{"level": "BAD", "code": "F55",
    "where": "node n1", "what": "wrong results", "evidence": "3 elements", "since": null,
    "action": "exclude", "hosts": ["n1"]}]})");
  tree.plant("r/links/notes.json", R"([{"level": "not checked", "code": null, "where": "x",
    "what": "why", "evidence": null, "since": null, "action": null}])");
  const std::string at = tree.root().string();
  const test::Run text = test::mmprobe("fleet --replay " + at + "/r --history " + at + "/h");
  CHECK(text.exit_code == 69);
  CHECK(text.output ==
        "node                 verdict     bad  warn  not checked  lemon\n"
        "n0                   good          0     0            0    0.0\n"
        "n1                   BAD           1     0            0    1.0\n"
        "n2                   BAD           1     0            0    1.0\n"
        "n3                   good          0     0            0    0.0\n"
        "n1: BAD         F55 node n1: wrong results; 3 elements; since unknown; action: exclude\n"
        "n2: BAD         F06 n2: slow with every partner; 5.000 GB/s, 9.0 us; others 12.000 GB/s, "
        "9.0 us; since unknown; action: exclude the node; check its links\n"
        "links: not checked     x: why\n"
        "--exclude=n1,n2\n"
        "scontrol update NodeName=n1 State=DRAIN Reason=\"mmprobe F55 node n1: wrong results\"\n"
        "scontrol update NodeName=n2 State=DRAIN Reason=\"mmprobe F06 n2: slow with every "
        "partner\"\n"
        "verdict 2 of 4 nodes BAD\n");
  const std::string history = mm::read_file(tree.root() / "h");
  CHECK(history.find(R"("host":"n2","bad":true,"codes":["F06"])") != std::string::npos);
  const Json json = Json::parse(test::mmprobe("fleet --json --replay " + at + "/r").output);
  CHECK(json["exclude"] == Json::array({"n1", "n2"}));
  CHECK(json["pairs"]["rails"] == Json::array({"ib0"}));
  CHECK(json["collectives"]["nccl-node"]["schema"] == 1);
  CHECK(json["links"][0]["level"] == "not checked");
  tree.plant("r/links/pairs.json", "{}");
  CHECK(test::mmprobe("fleet --replay " + at + "/r").exit_code == 65);
  tree.plant("r/links/pairs.json", R"({"members": [], "rails": [], "pairs": []})");
  tree.plant("r/links/nccl-node.json", R"({"findings": [{"level": "odd"}]})");
  CHECK(test::mmprobe("fleet --replay " + at + "/r").exit_code == 65);
}

namespace {

/// Task `task` of two, on two nodes, of job 5, in `directory`.
test::Run fleet_task(int task, const std::filesystem::path& directory, int timeout_s) {
  const std::string before = fmt::format(
      "cd {} && SLURM_PROCID={} SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODEID={} SLURM_JOB_ID=5 "
      "SLURM_STEP_ID=0 SLURM_JOB_NODELIST='n[0-1]' SLURM_TASKS_PER_NODE='1(x2)' "
      "MASTER_ADDR=127.0.0.1",
      directory.string(), task, task);
  return test::mmprobe(
      fmt::format("fleet --checks pairs --timeout {} --pair-bytes 64K --pair-tolerance 0.99",
                  timeout_s),
      before);
}

size_t entries_in(const std::filesystem::path& directory) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

}  // namespace

TEST_CASE("mmprobe fleet: its directory stays for a node that comes late, which ends by itself") {
  const PlantedTree tree;
  const test::Run alone = fleet_task(0, tree.root(), 1);
  CHECK(alone.exit_code == 69);
  CHECK(alone.output.find("--exclude=n1\n") != std::string::npos);
  REQUIRE(entries_in(tree.root()) == 1);
  const auto kept = std::filesystem::directory_iterator(tree.root())->path();
  CHECK(std::filesystem::exists(kept / "links/plan.json"));
  const test::Run late = fleet_task(1, tree.root(), 1);
  CHECK(late.exit_code == 0);
  CHECK(late.output.find("this node came too late") != std::string::npos);
  std::filesystem::remove_all(kept);
  // With both there in time nothing stays.
  test::Run second{};
  std::thread other([&] { second = fleet_task(1, tree.root(), 60); });
  const test::Run first = fleet_task(0, tree.root(), 60);
  other.join();
  CHECK(first.exit_code == 0);
  CHECK(second.exit_code == 0);
  CHECK(entries_in(tree.root()) == 0);
}

TEST_CASE("fleet rails: those that all ranks have are measured, the others are named") {
  std::mutex mutex;
  std::vector<std::string> told;
  const std::vector<std::vector<std::string>> settings = {
      {"=none", "=lo", "l"}, {"=lo", "l"}, {"=lo", "=lo", "=none"}};
  test::run_ranks(3, [&](RankStar& star) {
    const auto agreed = agree_on_rails(settings[static_cast<size_t>(star.rank())], 1,
                                       star.hosts()[static_cast<size_t>(star.rank())], star);
    const std::lock_guard lock(mutex);
    CHECK(agreed.rails.size() == 1);
    CHECK(agreed.rails.at(0).name == "lo");
    told.push_back(agreed.left_out);
  });
  REQUIRE(told.size() == 3);
  CHECK(told[0] == told[1]);
  CHECK(told[0] == told[2]);
  CHECK(told[0].starts_with("=none (n0: NCCL_SOCKET_IFNAME==none: no such interface; there is: "));
  CHECK(told[0].find("; n1: was not told of it; n2: ") != std::string::npos);
  CHECK(told[0].ends_with(", l (n2: was not told of it)"));
}

TEST_CASE("fleet links: an earlier start's measurements are forgotten, other files stay") {
  const PlantedTree tree;
  for (const char* name : {"plan.json", "pairs.json", "notes.json", "nccl-all.json",
                           "nccl-node.rank-3.log", "mine.txt"})
    tree.plant(std::string("links/") + name, "x");
  forget_link_checks(tree.root());
  CHECK(std::filesystem::exists(tree.root() / "links/mine.txt"));
  CHECK(std::distance(std::filesystem::directory_iterator(tree.root() / "links"), {}) == 1);
  forget_link_checks(tree.root() / "none");
}
