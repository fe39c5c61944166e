// Readers of text from outside, fed with thousands of damaged inputs: they answer or throw their
// own error of one line, and never crash, hang or throw anything else. The sanitizer build runs
// this too.
#include <doctest/doctest.h>

#include <string>

#include "lib/base/config.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/random.h"
#include "lib/base/slurm.h"
#include "lib/base/text_escape.h"

namespace {

constexpr int kRounds = 3000;

// 1 to 4 edits: a byte replaced, removed, doubled, or the tail cut off.
std::string damaged(std::string text, uint64_t round) {
  const mm::Philox draws = mm::Philox(11, "damage").child(round);
  const uint64_t edits = 1 + draws.below(0, 4);
  for (uint64_t i = 0; i < edits && !text.empty(); ++i) {
    const mm::Philox edit = draws.child(i);
    const size_t at = edit.below(0, text.size());
    switch (edit.below(1, 4)) {
      case 0:
        text[at] = static_cast<char>(edit.below(2, 256));
        break;
      case 1:
        text.erase(at, 1);
        break;
      case 2:
        text.insert(at, 1 + edit.below(2, 3), text[at]);
        break;
      default:
        if (edit.below(2, 8) == 0) text.resize(at);
    }
  }
  return text;
}

// Runs `read` on damaged copies; every E must be one line that begins with `lead`. Returns how many
// copies were refused.
template <typename E, typename F>
int refused(const std::string& text, const std::string& lead, F&& read) {
  int count = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string input = damaged(text, static_cast<uint64_t>(round));
    CAPTURE(mm::escape_text(input, 2000));
    try {
      read(input);
    } catch (const E& error) {
      ++count;
      const std::string message = error.what();
      REQUIRE(message.starts_with(lead));
      REQUIRE(message.find('\n') == std::string::npos);
    }
  }
  return count;
}

}  // namespace

TEST_CASE("parse_json: damaged text is refused with its origin, or read and written back") {
  const std::string text =
      R"({"name": "a \u00e9 ü", "list": [1, -2.5e3, true, null, {"deep": [[]]}], "n": 18446744073709551615})";
  const int count = refused<mm::DataError>(text, "x.json: byte ", [](const std::string& input) {
    const mm::Json json = mm::parse_json(input, "x.json");
    REQUIRE(mm::parse_json(json.dump(), "again") == json);
  });
  CHECK(count > kRounds / 4);
  CHECK(count < kRounds);
}

TEST_CASE("ConfigDocument: damaged recipes are refused at a place, or read") {
  const std::string text = R"(seed = 1_000
name = "é"
[train]
lr = 1e-3
path = "a/b"
[[stage]]
kind = "warm"
sizes = [1, 2]
)";
  const int count = refused<mm::UsageError>(text, "r/x.toml", [](const std::string& input) {
    mm::ConfigDocument document = mm::ConfigDocument::parse(input, "r/x.toml");
    mm::ConfigTable root = document.root();
    root.get_int("seed", {.def = 1, .min = 0});
    root.get_string("name", {.def = "x"});
    mm::ConfigTable train = root.table("train");
    train.get_double("lr", {.def = 0.1, .min = 0, .max = 1});
    train.get_path("path", {.def = "/"});
    for (mm::ConfigTable& stage : root.array_of_tables("stage")) {
      stage.get_enum("kind", {.words = {"warm", "main"}, .def = "warm"});
      stage.get_int_list("sizes", {.def = {{1}}});
    }
    root.finish();
    const std::string resolved = document.to_toml();
    REQUIRE_NOTHROW(mm::ConfigDocument::parse(resolved, "again"));
  });
  CHECK(count > kRounds / 2);
  CHECK(count < kRounds);
}

TEST_CASE("--set: damaged assignments are refused by name, or applied") {
  const int count =
      refused<mm::UsageError>("stage.warm.lr=[1, \"x\"]", "--set ", [](const std::string& input) {
        mm::ConfigDocument document =
            mm::ConfigDocument::parse("[[stage]]\nname = \"warm\"\nlr = [0.1]\n", "x.toml");
        document.apply_override(input);
      });
  CHECK(count > kRounds / 4);
}

TEST_CASE("C58: damaged host lists are refused by name, or expand to names without brackets") {
  const int count = refused<mm::UsageError>(
      "n[001-003,007],gpu-a[1-2]", "host list \"", [](const std::string& input) {
        for (const std::string& host : mm::slurm::expand_hostlist(input)) {
          REQUIRE_FALSE(host.empty());
          REQUIRE(host.find_first_of("[],") == std::string::npos);
        }
      });
  CHECK(count > kRounds / 4);
}

TEST_CASE("C59: damaged tasks per node are refused by name, or all at least 1") {
  const int count =
      refused<mm::UsageError>("3(x2),2,1(x2)", "tasks per node \"", [](const std::string& input) {
        for (const int tasks : mm::slurm::expand_tasks_per_node(input)) REQUIRE(tasks >= 1);
      });
  CHECK(count > kRounds / 4);
}

TEST_CASE("escape_text: any bytes become printable, valid UTF-8 within the limit") {
  const mm::Philox draws(5, "bytes");
  for (uint64_t round = 0; round < 500; ++round) {
    std::string text;
    for (uint64_t i = 0; i < 60; ++i) text += static_cast<char>(draws.child(round).below(i, 256));
    std::string_view rest = text;
    const std::string safe = mm::escape_text(text, 100);
    REQUIRE(safe.size() <= 100);
    for (rest = safe; !rest.empty(); rest.remove_prefix(mm::utf8_length(rest))) {
      REQUIRE(mm::utf8_length(rest) > 0);
      REQUIRE(static_cast<unsigned char>(rest[0]) >= 0x20);
    }
  }
}
