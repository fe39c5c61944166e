#include "lib/base/config.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

using mm::ConfigDocument;
using mm::ConfigTable;
using mm::UsageError;
using mm::test::message_of;

namespace {

ConfigDocument recipe(const std::string& text, const std::vector<std::string>& overrides = {}) {
  ConfigDocument document = ConfigDocument::parse(text, "recipes/x.toml");
  for (const std::string& assignment : overrides) document.apply_override(assignment);
  return document;
}

template <typename F>
std::string refusal(const std::string& text, F&& read) {
  return message_of<UsageError>([&] {
    ConfigTable root = recipe(text).root();
    read(root);
    root.finish();
  });
}

std::string syntax(const std::string& text) {
  return message_of<UsageError>([&] { recipe(text); });
}

}  // namespace

TEST_CASE("ConfigTable: values of every type, with TOML's ways to write numbers") {
  ConfigTable root = recipe(R"(
steps = 1_000
hex = 0x10
lr = 1e-3
whole = 2
on = true
name = "a\tb"
kind = "adam"
sizes = [1, 2_0]
betas = [0.9, 1]
tags = ["x", "y"]
)")
                         .root();
  CHECK(root.get_int("steps") == 1000);
  CHECK(root.get_int("hex") == 16);
  CHECK(root.get_double("lr") == 1e-3);
  CHECK(root.get_double("whole") == 2.0);
  CHECK(root.get_bool("on"));
  CHECK(root.get_string("name") == "a\tb");
  CHECK(root.get_enum("kind", {.words = {"sgd", "adam"}}) == "adam");
  CHECK(root.get_int_list("sizes") == std::vector<int64_t>{1, 20});
  CHECK(root.get_double_list("betas") == std::vector<double>{0.9, 1.0});
  CHECK(root.get_string_list("tags") == std::vector<std::string>{"x", "y"});
  CHECK_NOTHROW(root.finish());
}

TEST_CASE("ConfigTable: absent keys and tables give their defaults, find gives nothing") {
  ConfigTable root = recipe("").root();
  ConfigTable train = root.table("train");
  CHECK_FALSE(train.present());
  CHECK(train.get_int("steps", {.def = 7}) == 7);
  CHECK(train.get_string("name", {.def = ""}).empty());
  CHECK_FALSE(train.find_int("limit").has_value());
  CHECK_FALSE(train.find_path("dir").has_value());
  CHECK_FALSE(root.has("train"));
  CHECK(root.array_of_tables("stage").empty());
  CHECK(root.keys().empty());
}

TEST_CASE("ConfigTable: an unknown key is named with its place and the nearest known key") {
  const auto read = [](ConfigTable& root) {
    root.table("data").get_int("sequence_length", {.def = 1});
  };
  CHECK(refusal("\n[data]\n  sequence_lenght = 4\n", read) ==
        "recipes/x.toml:3:3: unknown key \"sequence_lenght\" in [data]; did you mean "
        "\"sequence_length\"?");
  CHECK(refusal("[dta]\nx = 1\n", read) ==
        "recipes/x.toml:1:2: unknown key \"dta\" at the top level; did you mean \"data\"?");
  CHECK(refusal("[data]\nzzz = 1\n", read) ==
        "recipes/x.toml:2:1: unknown key \"zzz\" in [data]; known: sequence_length");
  CHECK(refusal("[data]\nzz = 1\naa = 1\n", read).starts_with("recipes/x.toml:2:1: "));
}

TEST_CASE("ConfigTable: tables that nobody opened are unknown, tables read twice are known") {
  CHECK(refusal("[a]\nx = 1\ny = 2\n", [](ConfigTable& root) {
          root.table("a").get_int("x");
          root.table("a").get_int("y");
        }) == "no error");
  CHECK(refusal("[a.b]\nx = 1\n", [](ConfigTable& root) { root.table("a"); }) ==
        "recipes/x.toml:1:4: unknown key \"b\" in [a]");
  CHECK(refusal("[[stage]]\nlr = 1\n[[stage]]\nrl = 1\n", [](ConfigTable& root) {
          for (ConfigTable& stage : root.array_of_tables("stage")) {
            stage.get_double("lr", {.def = 0.0});
          }
        }) == "recipes/x.toml:4:1: unknown key \"rl\" in [stage.1]; did you mean \"lr\"?");
}

TEST_CASE("ConfigTable: a wrong type names key, wanted type and what is there") {
  const std::string text = "\n\n[data]\nlength = \"4k\"\nrate = 1.5\nflag = 1\nlist = 3\n";
  const auto error = [&](auto get) {
    return refusal(text, [&](ConfigTable& root) {
      ConfigTable data = root.table("data");
      get(data);
    });
  };
  CHECK(error([](ConfigTable& t) { t.get_int("length"); }) ==
        "recipes/x.toml:4:10: data.length: expected an integer, found a string (\"4k\")");
  CHECK(error([](ConfigTable& t) { t.get_int("rate"); }) ==
        "recipes/x.toml:5:8: data.rate: expected an integer, found a number (1.5)");
  CHECK(error([](ConfigTable& t) { t.get_bool("flag"); }) ==
        "recipes/x.toml:6:8: data.flag: expected true or false, found an integer (1)");
  CHECK(error([](ConfigTable& t) { t.get_string("flag"); }) ==
        "recipes/x.toml:6:8: data.flag: expected a string, found an integer (1)");
  CHECK(error([](ConfigTable& t) { t.get_int_list("list"); }) ==
        "recipes/x.toml:7:8: data.list: expected a list, found an integer (3)");
  CHECK(error([](ConfigTable& t) { t.table("flag"); }) ==
        "recipes/x.toml:6:8: data.flag: expected a table, found an integer (1)");
  CHECK(error([](ConfigTable& t) { t.array_of_tables("flag"); }) ==
        "recipes/x.toml:6:8: data.flag: expected a list of tables ([[flag]]), found an integer "
        "(1)");
  CHECK(error([](ConfigTable& t) { t.get_path("rate"); }) ==
        "recipes/x.toml:5:8: data.rate: expected a path, found a number (1.5)");
}

TEST_CASE("ConfigTable: a value out of range says the range") {
  const auto with = [](const std::string& text, mm::IntOption option) {
    return refusal(text, [&](ConfigTable& root) { root.get_int("n", option); });
  };
  CHECK(with("n = 0", {.min = 1}) ==
        "recipes/x.toml:1:5: n: 0 is out of range, expected at least 1");
  CHECK(with("n = 11", {.min = 1, .max = 10}) ==
        "recipes/x.toml:1:5: n: 11 is out of range, expected 1 to 10");
  CHECK(with("n = 11", {.max = 10}) ==
        "recipes/x.toml:1:5: n: 11 is out of range, expected at most 10");
  CHECK(with("n = 10", {.min = 10, .max = 10}) == "no error");
  CHECK(refusal("n = -0.5", [](ConfigTable& t) { t.get_double("n", {.min = 0, .max = 1}); }) ==
        "recipes/x.toml:1:5: n: -0.5 is out of range, expected 0 to 1");
  CHECK(refusal("n = nan", [](ConfigTable& t) { t.get_double("n"); }) ==
        "recipes/x.toml:1:5: n: expected a finite number, found a number (nan)");
  CHECK(refusal("n = [1, -2]", [](ConfigTable& t) { t.get_int_list("n", {.min = 0}); }) ==
        "recipes/x.toml:1:5: n: -2 is out of range, expected at least 0");
  CHECK(refusal("n = [1, 2]", [](ConfigTable& t) {
          t.get_double_list("n", {.min_count = 3, .max_count = 3});
        }) == "recipes/x.toml:1:5: n: 2 elements, expected 3");
  CHECK(refusal("n = \"\"", [](ConfigTable& t) { t.get_string("n"); }) ==
        "recipes/x.toml:1:5: n: expected a string that is not empty");
}

TEST_CASE("ConfigTable: an unknown word lists the words and the nearest") {
  const auto with = [](const std::string& text) {
    return refusal(text, [](ConfigTable& t) {
      t.get_enum("kind", {.words = {"adamw", "sgd", "lion"}});
    });
  };
  CHECK(with("kind = \"admw\"") ==
        "recipes/x.toml:1:8: kind: \"admw\" is not known, expected \"adamw\", \"sgd\" or \"lion\"; "
        "did you mean \"adamw\"?");
  CHECK(with("kind = \"zzzzzz\"") ==
        "recipes/x.toml:1:8: kind: \"zzzzzz\" is not known, expected \"adamw\", \"sgd\" or "
        "\"lion\"");
  CHECK(with("kind = 1") ==
        "recipes/x.toml:1:8: kind: expected \"adamw\", \"sgd\" or \"lion\", found an integer (1)");
}

TEST_CASE("ConfigTable: a missing key names its table's place and meaning") {
  CHECK(refusal("\n[train]\n", [](ConfigTable& root) {
          root.table("train").get_int("steps", {.doc = "optimizer steps"});
        }) == "recipes/x.toml:2:1: missing key \"steps\" in [train] (optimizer steps)");
  CHECK(refusal("", [](ConfigTable& root) { root.table("train").get_string("name"); }) ==
        "recipes/x.toml: missing key \"name\" in [train]");
  CHECK(refusal("", [](ConfigTable& root) { root.get_string("name"); }) ==
        "recipes/x.toml: missing key \"name\" at the top level");
}

TEST_CASE("ConfigTable: paths start at the recipe, absolute ones stay") {
  const mm::test::TempDir dir;
  mm::write_file_atomic(dir / "r.toml", "a = \"../x/./y\"\nb = \"/abs\"\nc = \"none\"\nd = \"\"\n");
  ConfigTable root = ConfigDocument::load(dir / "r.toml").root();
  CHECK(root.get_path("a") == (dir.path().parent_path() / "x/y"));
  CHECK(root.get_path("b") == "/abs");
  CHECK(message_of<UsageError>([&] { root.get_path("c", {.must_exist = true}); }) ==
        (dir / "r.toml").string() +
            ":3:5: c: no such file or directory: " + (dir / "none").string());
  CHECK_THROWS_AS(root.get_path("d"), UsageError);
}

TEST_CASE("ConfigTable: fail puts the caller's complaint at the key") {
  CHECK(refusal("[t]\na = 1\n", [](ConfigTable& root) {
          root.table("t").fail("a", "does not divide the batch");
        }) == "recipes/x.toml:2:5: t.a: does not divide the batch");
}

TEST_CASE("ConfigTable: a key without effect is refused where it stands, its default is not") {
  const auto read = [](ConfigTable& root) {
    ConfigTable t = root.table("t");
    t.get_double("scale", {.def = 8.0});
    t.get_string_list("names", {.def = std::vector<std::string>{"*"}});
    t.find_path("from");
    t.refuse_unused({"scale", "names", "from"}, "without t.on; leave it out");
  };
  for (const char* good : {"", "[t]\nscale = 8\n", "[t]\nnames = ['*']\n"})
    CHECK(refusal(good, read) == "no error");
  CHECK(refusal("[t]\nscale = 9\n", read) ==
        "recipes/x.toml:2:9: t.scale: has no effect without t.on; leave it out");
  CHECK(refusal("[t]\n\nnames = []\n", read).starts_with("recipes/x.toml:3:9: t.names: "));
  CHECK(refusal("t.from = 'x'\n", read).starts_with("recipes/x.toml:1:10: t.from: "));
  ConfigDocument old = recipe("[t]\nscale = 9\n", {"t.names=[]"});
  old.let_unused_keys_stand();
  ConfigTable root = old.root();
  CHECK_NOTHROW(read(root));
}

TEST_CASE("ConfigDocument: syntax errors, duplicate keys and bad bytes become one line") {
  CHECK(syntax("a = 1\na = 2\n") ==
        "recipes/x.toml:2:5: not valid TOML: key-value pair: cannot redefine existing integer 'a'");
  CHECK(syntax("[a]\n[a]\n") ==
        "recipes/x.toml:2:1: not valid TOML: table header: cannot redefine existing table 'a'");
  CHECK(syntax("a = [1,\n") ==
        "recipes/x.toml:1:9: not valid TOML: array: encountered end-of-file");
  CHECK(syntax("a = tru\n").find('\n') == std::string::npos);
  CHECK(syntax("a = \xff\n").starts_with("recipes/x.toml:1:4: not valid TOML: "));
  CHECK(syntax("a = " + std::string(100'000, '[')).starts_with("recipes/x.toml:1:"));
}

TEST_CASE("ConfigDocument: a recipe that is not there is a usage error") {
  CHECK(message_of<UsageError>([] { ConfigDocument::load("/none/x.toml"); }) ==
        "/none/x.toml: cannot open: No such file or directory");
}

TEST_CASE("ConfigTable: a required key that is misspelt is named where it stands") {
  ConfigDocument document = ConfigDocument::parse("[train]\nstepps = 3\n", "recipes/x.toml");
  ConfigTable train = document.root().table("train");
  CHECK_THROWS_WITH_AS(
      train.get_int("steps"),
      "recipes/x.toml:2:1: unknown key \"stepps\" in [train]; did you mean \"steps\"?", UsageError);
}
