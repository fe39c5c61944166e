#include "lib/base/slurm.h"

#include <doctest/doctest.h>

#include <numeric>

#include "lib/base/error.h"
#include "tests/base/temp_dir.h"

using Names = std::vector<std::string>;
using mm::slurm::expand_hostlist;
using mm::slurm::expand_tasks_per_node;
using mm::test::message_of;

namespace {

std::vector<int> first_ranks(const std::vector<int>& tasks) {
  std::vector<int> first(tasks.size());
  std::exclusive_scan(tasks.begin(), tasks.end(), first.begin(), 0);
  return first;
}

std::string host_error(const std::string& text) {
  return message_of<mm::UsageError>([&] { expand_hostlist(text); });
}

}  // namespace

TEST_CASE("C58: host lists expand with leading zeros, several groups and in order") {
  CHECK(expand_hostlist("n[001-003,007],gpu-a[1-2]") ==
        Names{"n001", "n002", "n003", "n007", "gpu-a1", "gpu-a2"});
  CHECK(expand_hostlist("b04-[09-10]") == Names{"b04-09", "b04-10"});
  CHECK(expand_hostlist("nodeA,nodeB[001,003],nodeC") ==
        Names{"nodeA", "nodeB001", "nodeB003", "nodeC"});
  CHECK(expand_hostlist("n[8-11]") == Names{"n8", "n9", "n10", "n11"});
  CHECK(expand_hostlist("n[098-101]") == Names{"n098", "n099", "n100", "n101"});
  CHECK(expand_hostlist("ml-16-node-[001-002,004],ml-17-node-[001-003]") ==
        Names{"ml-16-node-001", "ml-16-node-002", "ml-16-node-004", "ml-17-node-001",
              "ml-17-node-002", "ml-17-node-003"});
  CHECK(expand_hostlist("c[1-2]") == Names{"c1", "c2"});
  CHECK(expand_hostlist("node5") == Names{"node5"});
}

TEST_CASE("C58: several brackets in a name give their product, text may follow them") {
  CHECK(expand_hostlist("n[01-02,7]r[1-2]") ==
        Names{"n01r1", "n01r2", "n02r1", "n02r2", "n7r1", "n7r2"});
  CHECK(expand_hostlist("a[1-2]-ib.cluster,b") == Names{"a1-ib.cluster", "a2-ib.cluster", "b"});
  CHECK(expand_hostlist("[1-2]") == Names{"1", "2"});
}

TEST_CASE("C58: a broken host list is an error with the place, never one host") {
  CHECK(host_error("n[1-") == "host list \"n[1-\": character 5: expected a number");
  CHECK(host_error("n[3-1]") == "host list \"n[3-1]\": character 6: range 3-1 descends");
  CHECK(host_error("n[a-b]") == "host list \"n[a-b]\": character 3: expected a number");
  for (const char* broken : {"", ",", "a,", ",a", "a,,b", "n[]", "n[1", "n[1,]", "n]", "n[1]]",
                             "n[[1]]", "a b", "n[1-2-3]", "n[1-99999999999]", "n[0-9999999]",
                             "n[0-9999][0-9999]", "n[1-9999999999999999999999]", "a\n"}) {
    CAPTURE(broken);
    CHECK(host_error(broken).starts_with("host list \""));
  }
}

TEST_CASE("C59: tasks per node expand, and first ranks follow") {
  const auto uneven = expand_tasks_per_node("2(x3),1");
  CHECK(uneven == std::vector<int>{2, 2, 2, 1});
  CHECK(first_ranks(uneven) == std::vector<int>{0, 2, 4, 6});
  CHECK(expand_tasks_per_node("1(x2)") == std::vector<int>{1, 1});
  CHECK(expand_tasks_per_node("4") == std::vector<int>{4});
  const auto mixed = expand_tasks_per_node("3(x2),2,1(x2)");
  CHECK(mixed == std::vector<int>{3, 3, 2, 1, 1});
  CHECK(first_ranks(mixed) == std::vector<int>{0, 3, 6, 8, 9});
}

TEST_CASE("C59: broken tasks per node are an error with the place") {
  CHECK(message_of<mm::UsageError>([] { expand_tasks_per_node("2(x"); }) ==
        "tasks per node \"2(x\": character 4: expected a number");
  for (const char* broken : {"", "a", "2(3)", "2(x3", "2,", "0", "2(x0)", "2x3", "-1", "2(x3)4",
                             "1(x99999999)", "9999999"}) {
    CAPTURE(broken);
    CHECK_THROWS_AS(expand_tasks_per_node(broken), mm::UsageError);
  }
}
