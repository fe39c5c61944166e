#include "lib/run/import_pack.h"

#include <doctest/doctest.h>

#include "lib/run/import_shell.h"

using namespace mm::run;

namespace {

PackCommand some_command() {
  return {.source = "a b/data.json",
          .out = "packed/data",
          .tokenizer = "m/tokenizer.model",
          .image_root = "it's",
          .chat_template = "plain",
          .image_side = 336,
          .patch = 14,
          .max_length = 2048};
}

/// The words a shell makes of the command's lines.
std::vector<std::string> words(const PackCommand& command) {
  std::string text;
  for (const std::string& line : command.lines()) text += line + "\n";
  const ShellScript script = read_shell(text, {.origin = "pack", .variables = {}, .arguments = {}});
  REQUIRE(script.commands.size() == 1);
  return script.commands[0].words;
}

}  // namespace

TEST_CASE("PackCommand: a shell reads its lines as one command, whatever the paths hold") {
  CHECK(words(some_command()) ==
        std::vector<std::string>{"mmshard", "pack", "a b/data.json", "--out", "packed/data",
                                 "--tokenizer", "m/tokenizer.model", "--image-root", "it's",
                                 "--template", "plain", "--max-length", "2048", "--geometry",
                                 "crop", "--image-side", "336", "--patch", "14"});
  for (const std::string& line : some_command().lines()) CHECK(line.size() <= 110);
}

TEST_CASE("PackCommand: what is not known is left to mmshard's defaults or shows as a gap") {
  const std::vector<std::string> seen =
      words({.source = "d", .out = "o", .tokenizer = "t", .image_root = "", .chat_template = ""});
  CHECK(seen == std::vector<std::string>{"mmshard", "pack", "d", "--out", "o", "--tokenizer", "t",
                                         "--template", "TEMPLATE.toml", "--geometry", "crop"});
}

TEST_CASE("PackCommand: tiles have their own words") {
  PackCommand command = some_command();
  command.geometry = "anyres";
  command.grids = "1x2,2x1";
  command.max_grid_tiles = 9;
  const std::vector<std::string> seen = words(command);
  CHECK(std::vector<std::string>(seen.end() - 4, seen.end()) ==
        std::vector<std::string>{"--grids", "1x2,2x1", "--max-grid-tiles", "9"});
}

TEST_CASE("read_tower_name: published names say side and patch, others nothing") {
  struct Case {
    const char* name;
    int64_t side, patch;
  };
  for (const Case& c :
       {Case{"openai/clip-vit-large-patch14-336", 336, 14},
        Case{"openai/clip-vit-large-patch14", 224, 14},
        Case{"google/siglip-so400m-patch14-384", 384, 14},
        Case{"google/siglip-base-patch16-224", 224, 16}, Case{"my/tower", 0, 0}, Case{"", 0, 0}}) {
    CAPTURE(std::string(c.name));
    CHECK(read_tower_name(c.name).image_side == c.side);
    CHECK(read_tower_name(c.name).patch == c.patch);
  }
  CHECK(read_tower_name(std::string(100'000, 'p') + "patch14-336").patch == 0);
}

TEST_CASE("base_name, packed_name, shell_quoted: edges") {
  CHECK(base_name("a/b.json") == "b.json");
  CHECK(base_name("") == "DATA");
  CHECK(base_name("a/") == "DATA");
  CHECK(packed_name("x/y.tar.gz") == "packed/y.tar");
  CHECK(shell_quoted("plain-1.0/x") == "plain-1.0/x");
  CHECK(shell_quoted("") == "''");
  CHECK(shell_quoted("a'b") == "'a'\\''b'");
  CHECK(shell_quoted("$(rm)") == "'$(rm)'");
}
