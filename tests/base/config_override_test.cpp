#include <doctest/doctest.h>

#include "lib/base/config.h"
#include "lib/base/error.h"
#include "tests/base/temp_dir.h"

using mm::ConfigDocument;
using mm::ConfigTable;
using mm::UsageError;
using mm::test::message_of;

namespace {

const char* const kRecipe = R"(
name = "base"
[train]
steps = 10
betas = [0.9, 0.95]
[[stage]]
name = "warm"
lr = 0.1
[[stage]]
name = "pretrain"
lr = 0.2
)";

ConfigTable with(const std::vector<std::string>& overrides) {
  ConfigDocument document = ConfigDocument::parse(kRecipe, "x.toml");
  for (const std::string& assignment : overrides) document.apply_override(assignment);
  return document.root();
}

std::string refused(const std::string& assignment) {
  return message_of<UsageError>([&] { with({assignment}); });
}

}  // namespace

TEST_CASE("--set: TOML values by type, anything else as a bare string") {
  CHECK(with({"train.steps=1_0"}).table("train").get_int("steps") == 10);
  CHECK(with({"name=llava base/x:1"}).get_string("name") == "llava base/x:1");
  CHECK(with({"name=\"7\""}).get_string("name") == "7");
  CHECK(with({"name=a=b"}).get_string("name") == "a=b");
  CHECK(with({"name="}).get_string("name", {.allow_empty = true}).empty());
  CHECK(with({"name=1\ny=2"}).get_string("name") == "1\ny=2");
  CHECK(with({"train={steps=3}"}).table("train").get_int("steps") == 3);
  CHECK(with({"train.betas.1=0.5"}).table("train").get_double_list("betas")[1] == 0.5);
}

TEST_CASE("--set: the last one wins and tables on the way are made") {
  CHECK(with({"train.steps=1", "train.steps=2"}).table("train").get_int("steps") == 2);
  CHECK(with({"a.b.c=5"}).table("a").table("b").get_int("c") == 5);
}

TEST_CASE("--set: elements of a list of tables by number and by name") {
  auto stages = with({"stage.0.lr=5", "stage.pretrain.lr=6"}).array_of_tables("stage");
  CHECK(stages[0].get_double("lr") == 5);
  CHECK(stages[1].get_double("lr") == 6);
  CHECK(refused("stage.2.lr=1") ==
        "--set stage.2.lr=1: there is no element 2, the list has 2 (counted from 0)");
  CHECK(refused("stage.pretrian.lr=1") ==
        "--set stage.pretrian.lr=1: no element has the name \"pretrian\"; did you mean "
        "\"pretrain\"?");
}

TEST_CASE("--set: messages about what a flag set name the flag") {
  const auto error = [](const std::string& assignment) {
    return message_of<UsageError>([&] {
      ConfigTable root = with({assignment});
      root.get_string("name");
      ConfigTable train = root.table("train");
      train.get_int("steps", {.min = 1});
      train.get_double_list("betas");
      for (ConfigTable& stage : root.array_of_tables("stage")) {
        stage.get_string("name");
        stage.get_double("lr");
      }
      root.finish();
    });
  };
  CHECK(error("name=x") == "no error");
  CHECK(error("train.stpes=4") ==
        "--set train.stpes=4: unknown key \"stpes\" in [train]; did you mean \"steps\"?");
  CHECK(error("train.steps=4k") ==
        "--set train.steps=4k: train.steps: expected an integer, found a string (\"4k\")");
  CHECK(error("train.steps=0") ==
        "--set train.steps=0: train.steps: 0 is out of range, expected at least 1");
  CHECK(error("train={steps=\"a\"}") ==
        "--set train={steps=\"a\"}: train.steps: expected an integer, found a string (\"a\")");
  CHECK(error("stage.pretrain.lr=fast") ==
        "--set stage.pretrain.lr=fast: stage.1.lr: expected a finite number, found a string "
        "(\"fast\")");
  CHECK(error("trian.steps=1") ==
        "--set trian.steps=1: unknown key \"trian\" at the top level; did you mean \"train\"?");
}

TEST_CASE("--set: what is no assignment is refused") {
  CHECK(refused("train.steps") ==
        "--set train.steps: expected KEY=VALUE, for example --set train.steps=100");
  CHECK(refused("a..b=1").starts_with("--set a..b=1: empty name in the key; expected KEY=VALUE"));
  CHECK(refused("=1").starts_with("--set =1: empty name in the key"));
  CHECK(refused("train.steps.x=1") ==
        "--set train.steps.x=1: \"x\" lies in an integer (10), expected a table");
  CHECK(refused("train.betas=[1,").starts_with("--set train.betas=[1,: not a TOML value: "));
}

TEST_CASE("--set: a relative path starts at the current directory") {
  ConfigDocument document = ConfigDocument::parse("dir = \"a\"", "/recipes/x.toml");
  CHECK(document.root().get_path("dir") == "/recipes/a");
  document = ConfigDocument::parse("dir = \"a\"", "/recipes/x.toml");
  document.apply_override("dir=b");
  CHECK(document.root().get_path("dir") == std::filesystem::current_path() / "b");
}
