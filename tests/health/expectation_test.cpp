#include "lib/health/expectation.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/health/planted_node.h"

using namespace mm::health;

TEST_CASE("expectation: the built-in kinds read, and an unknown one lists them") {
  CHECK(expectation_names() == std::vector<std::string>{"cpu-only", "h100-8", "h200-8"});
  for (const std::string& name : expectation_names()) CHECK(load_expectation(name).name == name);
  CHECK(load_expectation("h100-8").gpu.nvlinks == 18);
  CHECK(load_expectation("").name == "any");
  CHECK_THROWS_WITH_AS(load_expectation("h100"),
                       "--sku h100: neither a file nor a built-in kind; did you mean \"h100-8\"?",
                       mm::UsageError);
}

TEST_CASE("expectation: a file, its defaults and its mistakes") {
  const test::PlantedTree tree;
  tree.plant("a.toml", "name = 'mine'\n[gpu]\ncount = 4\n");
  const Expectation e = load_expectation(tree.root() / "a.toml");
  CHECK(e.gpu.count == 4);
  CHECK(e.infiniband.link_downed_max == 2);
  tree.plant("b.toml", "[gpu]\ncuont = 4\n");
  CHECK_THROWS_AS(load_expectation(tree.root() / "b.toml"), mm::UsageError);
  tree.plant("c.toml", "[gpu]\ncount = -4\n");
  CHECK_THROWS_AS(load_expectation(tree.root() / "c.toml"), mm::UsageError);
  CHECK(expectation_reference().size() > 40);
}

TEST_CASE("expectation: versions compare as numbers") {
  CHECK(version_at_least("570.124.06", "535"));
  CHECK(version_at_least("12.8", "12.8"));
  CHECK_FALSE(version_at_least("12.8", "12.10"));
  CHECK_FALSE(version_at_least("", "1"));
  CHECK(version_at_least("5.15.0-1063-azure", "5.4"));
}
