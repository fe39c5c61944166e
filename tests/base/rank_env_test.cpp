#include "lib/base/rank_env.h"

#include <doctest/doctest.h>

#include <map>

#include "lib/base/error.h"
#include "tests/base/temp_dir.h"

using mm::RankEnv;
using Variables = std::map<std::string, std::string>;

namespace {

RankEnv read(const Variables& variables) {
  return mm::read_rank_env([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  });
}

std::string refused(const Variables& variables) {
  return mm::test::message_of<mm::UsageError>([&] { read(variables); });
}

Variables slurm(const Variables& changes = {}) {
  Variables base{{"SLURM_PROCID", "4"},
                 {"SLURM_NTASKS", "5"},
                 {"SLURM_LOCALID", "1"},
                 {"SLURM_NODEID", "1"},
                 {"SLURM_JOB_ID", "1500"},
                 {"SLURM_STEP_ID", "0"},
                 {"SLURM_JOB_NODELIST", "n[1-2]"},
                 {"SLURM_TASKS_PER_NODE", "3,2"}};
  for (const auto& [name, value] : changes) base[name] = value;
  return base;
}

Variables variables(const Variables& changes = {}) {
  Variables base{{"RANK", "1"},
                 {"WORLD_SIZE", "2"},
                 {"LOCAL_RANK", "1"},
                 {"MASTER_ADDR", "127.0.0.1"},
                 {"MASTER_PORT", "29500"}};
  for (const auto& [name, value] : changes) base[name] = value;
  return base;
}

}  // namespace

TEST_CASE("read_rank_env: nothing set is one rank on this host") {
  const RankEnv ranks = read({});
  CHECK(ranks.source == RankEnv::Source::kAlone);
  CHECK(ranks.world == 1);
  CHECK(ranks.hosts == std::vector<std::string>{ranks.host});
  CHECK_FALSE(ranks.host.empty());
}

TEST_CASE("read_rank_env: RANK and its partners") {
  const RankEnv ranks = read(variables());
  CHECK(ranks.source == RankEnv::Source::kVariables);
  CHECK(ranks.rank == 1);
  CHECK(ranks.world == 2);
  CHECK(ranks.local_rank == 1);
  CHECK(ranks.local_world == 2);
  CHECK(ranks.master_addr == "127.0.0.1");
  CHECK(ranks.master_port == 29500);
  CHECK(ranks.listen_fd == -1);
  CHECK(mm::describe(ranks) == "rank 1 of 2 on " + ranks.host + " (local 1 of 2)");
}

TEST_CASE("read_rank_env: half-set variables are errors that name the missing one") {
  CHECK(refused({{"RANK", "0"}}) ==
        "RANK is set but WORLD_SIZE is not; set both, or none to run one rank");
  CHECK(refused({{"WORLD_SIZE", "2"}}) ==
        "WORLD_SIZE is set but RANK is not; set both, or none to run one rank");
  CHECK(refused(variables({{"MASTER_ADDR", ""}})) == "WORLD_SIZE is set but MASTER_ADDR is not");
  CHECK(refused(variables({{"RANK", "2"}})) == "RANK=2 is not below WORLD_SIZE=2");
  CHECK(refused(variables({{"LOCAL_RANK", "2"}})) ==
        "LOCAL_RANK=2 is not below LOCAL_WORLD_SIZE=2");
  CHECK(refused(variables({{"RANK", "one"}})) ==
        "environment variable RANK: expected an integer from 0 to 1000000, found \"one\"");
  CHECK(refused(variables({{"MASTER_PORT", "70000"}})) ==
        "environment variable MASTER_PORT: expected an integer from 1 to 65535, found \"70000\"");
  CHECK(refused(variables({{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"MM_LISTEN_FD", "0"}})) ==
        "MM_LISTEN_FD=0 is not a listening socket; only mmtrain launch sets it");
}

TEST_CASE("read_rank_env: Slurm's variables give node, hosts and local ranks") {
  const RankEnv ranks = read(slurm());
  CHECK(ranks.source == RankEnv::Source::kSlurm);
  CHECK(ranks.rank == 4);
  CHECK(ranks.world == 5);
  CHECK(ranks.node == 1);
  CHECK(ranks.host == "n2");
  CHECK(ranks.hosts == std::vector<std::string>{"n1", "n2"});
  CHECK(ranks.local_rank == 1);
  CHECK(ranks.local_world == 2);
  CHECK(ranks.ranks_per_node == std::vector<int>{3, 2});
  CHECK(ranks.job_id == "1500.0.0");
  CHECK(ranks.restart_count == 0);
  CHECK(read(slurm({{"RANK", "0"}, {"WORLD_SIZE", "1"}})).source == RankEnv::Source::kVariables);
}

TEST_CASE("read_rank_env: the step's own node list wins over the job's") {
  const RankEnv ranks = read(slurm({{"SLURM_STEP_NODELIST", "n[7-8]"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "3(x2)"},
                                    {"SLURM_STEP_NUM_TASKS", "6"}}));
  CHECK(ranks.hosts.front() == "n7");
  CHECK(ranks.world == 6);
  CHECK(ranks.local_world == 3);
}

TEST_CASE("C59: tasks per node that do not add up to SLURM_NTASKS are an error") {
  CHECK(refused(slurm({{"SLURM_TASKS_PER_NODE", "2(x2)"}})) ==
        "SLURM_TASKS_PER_NODE=2(x2) adds up to 4 tasks, but SLURM_NTASKS=5");
  CHECK(refused(slurm({{"SLURM_TASKS_PER_NODE", "5"}})) ==
        "SLURM_TASKS_PER_NODE=5 is for 1 nodes, but SLURM_JOB_NODELIST names 2");
  CHECK(refused(slurm({{"SLURM_LOCALID", "2"}})) ==
        "SLURM_LOCALID=2 is not below tasks of this node=2");
  CHECK(refused(slurm({{"SLURM_NODEID", ""}})) ==
        "SLURM_PROCID is set but SLURM_NODEID is not; set both, or none to run one rank");
}

TEST_CASE("C60: a MASTER_ADDR that is not the first host is an error at once") {
  const Variables two_hosts{{"SLURM_JOB_NODELIST", "nodeA,nodeB"}};
  CHECK(read(slurm(two_hosts)).master_addr == "nodeA");
  auto with = [&](const std::string& address) {
    Variables v = slurm(two_hosts);
    v["MASTER_ADDR"] = address;
    return v;
  };
  CHECK(refused(with("nodeB")) ==
        "MASTER_ADDR=nodeB is not the first host of the job (nodeA), where rank 0 listens; unset "
        "it");
  CHECK(read(with("nodeA")).master_addr == "nodeA");
  CHECK(read(with("nodeA.cluster.local")).master_addr == "nodeA.cluster.local");
  CHECK(read(with("10.0.0.1")).master_addr == "10.0.0.1");
}

TEST_CASE("C60: jobs are told apart by number, step and restart, and no port follows from them") {
  CHECK(read(slurm({{"SLURM_JOB_ID", "1500"}})).master_port == 0);
  CHECK(read(slurm({{"SLURM_JOB_ID", "2500"}})).master_port == 0);
  CHECK(read(slurm({{"MASTER_PORT", "29500"}})).master_port == 29500);
  CHECK(read(slurm({{"SLURM_JOB_ID", "2500"}})).job_id == "2500.0.0");
  CHECK(read(slurm({{"SLURM_STEP_ID", "1"}})).job_id == "1500.1.0");
  const RankEnv again = read(slurm({{"SLURM_RESTART_COUNT", "1"}}));
  CHECK(again.job_id == "1500.0.1");
  CHECK(again.restart_count == 1);
}
