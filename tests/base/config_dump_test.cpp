#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/config.h"
#include "lib/base/toml_text.h"

using mm::ConfigDocument;
using mm::ConfigTable;

namespace {

void read_all(ConfigDocument& document) {
  ConfigTable root = document.root();
  root.get_int("seed", {.def = 1, .min = 0, .doc = "Seed of all random draws."});
  ConfigTable data = root.table("data");
  data.get_path("dir", {.doc = "Data set."});
  data.find_int("limit", {.doc = "Most samples."});
  data.get_enum("order", {.words = {"mixed", "sorted"}, .def = "mixed", .doc = "Order."});
  root.table("unused").present();
  for (ConfigTable& stage : root.array_of_tables("stage")) {
    stage.get_string("name", {.doc = "Name."});
    stage.table("optimizer").get_double("lr", {.def = 0.001, .min = 0, .doc = "Learning rate."});
    stage.get_double_list("betas", {.def = {{0.9, 1}}, .doc = "Decay."});
  }
  root.finish();
}

const char* const kRecipe = R"(
data = {dir = "d"}
[[stage]]
name = "a \"b\"\n"
[[stage]]
name = "c"
optimizer.lr = 1
)";

}  // namespace

TEST_CASE("to_toml: everything read with its defaults, and it reads the same again") {
  ConfigDocument document = ConfigDocument::parse(kRecipe, "/r/x.toml");
  read_all(document);
  const std::string text = document.to_toml();
  CHECK(text == R"(seed = 1

[data]
dir = "/r/d"
order = "mixed"

[[stage]]
name = "a \"b\"\n"
betas = [0.9, 1.0]

[stage.optimizer]
lr = 0.001

[[stage]]
name = "c"
betas = [0.9, 1.0]

[stage.optimizer]
lr = 1.0
)");
  ConfigDocument again = ConfigDocument::parse(text, "/elsewhere/y.toml");
  read_all(again);
  CHECK(again.to_toml() == text);
}

TEST_CASE("reference: every key once, with type, default and meaning") {
  ConfigDocument document = ConfigDocument::parse(kRecipe, "/r/x.toml");
  read_all(document);
  const auto keys = document.reference();
  REQUIRE(keys.size() == 7);
  CHECK(keys[0].type == "integer, at least 0");
  CHECK(keys[1].fallback == "required");
  CHECK(keys[2].fallback == "none");
  CHECK(keys[3].type == "\"mixed\" or \"sorted\"");
  CHECK(keys[6].key == "stage[].optimizer.lr");
  CHECK(mm::reference_markdown({keys[0], keys[1], keys[6]}) ==
        R"(### Top level

| key | type | default | meaning |
| --- | --- | --- | --- |
| `seed` | integer, at least 0 | `1` | Seed of all random draws. |

### `[data]`

| key | type | default | meaning |
| --- | --- | --- | --- |
| `dir` | path | required | Data set. |

### `[stage[].optimizer]`

| key | type | default | meaning |
| --- | --- | --- | --- |
| `lr` | number, at least 0 | `0.001` | Learning rate. |
)");
}

TEST_CASE("toml_text: numbers keep their type and value, strings are escaped, keys quoted") {
  CHECK(mm::toml_text(1.0) == "1.0");
  CHECK(mm::toml_text(1e-5) == "1e-05");
  CHECK(mm::toml_text(0.1) == "0.1");
  CHECK(mm::toml_text(INFINITY) == "inf");
  CHECK(mm::toml_text(std::string("\x01\\\"ü")) == "\"\\u0001\\\\\\\"ü\"");
  CHECK(mm::toml_key("a-B_1") == "a-B_1");
  CHECK(mm::toml_key("a.b") == "\"a.b\"");
  CHECK(mm::toml_key("") == "\"\"");
}

TEST_CASE("to_toml: a table that is absent and holds tables alone gets no header") {
  const auto resolve = [](const std::string& text) {
    mm::ConfigDocument document = mm::ConfigDocument::parse(text, "x.toml");
    mm::ConfigTable root = document.root();
    root.table("outer").table("inner").get_int("a", {.def = 1});
    root.get_int("b", {.def = 2});
    root.finish();
    return document.to_toml();
  };
  const std::string once = resolve("");
  CHECK(once == "b = 2\n\n[outer.inner]\na = 1\n");
  CHECK(resolve(once) == once);
}
