// What users see of mmtrain: help, messages, exit codes, JSON.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "tests/cli/mmtrain_process.h"

using namespace mm;
using namespace mm::test;
using mm::data::test::TempDir;

namespace {
Ended mmtrain(const TempDir& dir, std::vector<std::string> arguments) {
  return Mmtrain(dir.path(), std::move(arguments)).wait();
}
/// Checks that docs/recipes.md has every key of the recipe's reference, its type and meaning; the
/// default depends on the family. Returns how many there are.
size_t keys_on_the_page(const TempDir& dir, const std::string& recipe) {
  const std::string page = read_file(MM_TEST_DATA "/../docs/recipes.md");
  write_file_atomic(dir / "keys.toml", recipe);
  std::istringstream reference(
      mmtrain(dir, {"check", (dir / "keys.toml").string(), "--reference"}).output);
  size_t keys = 0;
  for (std::string line; std::getline(reference, line);) {
    if (!line.starts_with("| `")) continue;
    ++keys;
    const size_t type = line.find(" | ", line.find(" | ") + 3);
    CHECK_MESSAGE(page.find(line.substr(0, type)) != std::string::npos, line);
    CHECK_MESSAGE(page.find(line.substr(line.find(" | ", type + 3))) != std::string::npos, line);
  }
  return keys;
}

}  // namespace

TEST_CASE("mmtrain --help names the verbs and the exit codes, each verb's help has examples") {
  TempDir dir;
  const Ended help = mmtrain(dir, {"--help"});
  CHECK(help.status.ok());
  for (const char* verb : {"run", "launch", "status", "check", "eval", "caption", "report"}) {
    CHECK(help.output.find(verb) != std::string::npos);
    const Ended own = mmtrain(dir, {verb, "--help"});
    CHECK(own.status.ok());
    CHECK(own.output.find("Examples:") != std::string::npos);
  }
}

TEST_CASE("mmtrain: unknown verbs, options and missing arguments are usage errors of one line") {
  TempDir dir;
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"fly"},
                                                    {"run"},
                                                    {"run", "x.toml", "--runn", "r"},
                                                    {"launch", "--nproc", "0", "--", "run"},
                                                    {}}) {
    const Ended ended = mmtrain(dir, arguments);
    CHECK(ended.status.code == 2);
    CHECK(std::count(ended.output.begin(), ended.output.end(), '\n') == 1);
  }
}

TEST_CASE("mmtrain check: a good recipe, its JSON, its drawing, a missing data set is named") {
  TempDir dir;
  const std::string recipe = write_recipe(dir.path()).string();
  const Ended good = mmtrain(dir, {"check", recipe, "--ranks", "2"});
  CHECK(good.status.ok());
  CHECK(good.output.find("good") != std::string::npos);
  const Json json = parse_json(mmtrain(dir, {"check", recipe, "--json"}).output, "check");
  CHECK(json.at("schema") == 1);
  CHECK(json.at("stages").size() == 2);
  CHECK(mmtrain(dir, {"check", recipe, "--draw"}).output.find("F0.") != std::string::npos);
  const Ended missing = mmtrain(dir, {"check", recipe, "--set", "stage.0.data=/nowhere"});
  CHECK(missing.status.code != 0);
  CHECK(missing.output.find("/nowhere") != std::string::npos);
}

TEST_CASE("mmtrain run, status, report: one rank, text and JSON") {
  TempDir dir;
  const std::string recipe = write_recipe(dir.path()).string(), run = (dir / "run").string();
  CHECK(mmtrain(dir, {"status", run}).status.code == 2);
  CHECK(mmtrain(dir, {"run", recipe, "--run", run}).status.ok());
  const Ended status = mmtrain(dir, {"status", run});
  CHECK(status.output.find("step 9 all") != std::string::npos);
  CHECK(status.output.find("step-00000009") != std::string::npos);
  const Json json = parse_json(mmtrain(dir, {"status", run, "--json"}).output, "status");
  CHECK(json.at("last_step").at("step") == 9);
  CHECK(json.at("verdict").at("code") == 0);
  CHECK(mmtrain(dir, {"report", run}).status.ok());
  CHECK(read_file(dir / "run/report.html").find("<svg") != std::string::npos);
  CHECK(mmtrain(dir, {"run", recipe, "--run", run, "--resume", "never"}).status.code == 2);
}

TEST_CASE(
    "docs/recipes.md lists every key of diffusion models and autoencoders with its type and "
    "meaning") {
  TempDir dir;
  const std::string stage =
      "[[stage]]\nname = \"a\"\ndata = \"d\"\nsteps = 1\nbatch_pixels = 1\npacks_per_step = 1\n";
  for (const std::string family : {"pixart", "sd3", "dit", "vae"}) {
    std::string text = "[model]\nfamily = \"" + family + "\"\n";
    if (family == "sd3") text += "text_model = \".\"\ntext_model_2 = \".\"\n";
    text += stage + "lr = { " + (family == "vae" ? "vae" : "transformer") + " = 1 ";
    text += family == "pixart" ? ", text_encoder = 1 }\n" : "}\n";
    CHECK(keys_on_the_page(dir, text) > 40);
  }
}

TEST_CASE("docs/recipes.md lists every key of vision-language families with type and meaning") {
  TempDir dir;
  for (const std::string family : {"llava_next", "llava_onevision", "qwen2_5_vl"}) {
    const std::string text =
        "[model]\nfamily = \"" + family +
        "\"\n[[stage]]\nname = \"a\"\ndata = \"d\"\nsteps = 1\nsequence_length = 9\n"
        "packs_per_step = 1\nlr = { vision = 1, projector = 1, language = 1 }\n";
    CHECK(keys_on_the_page(dir, text) > 60);
  }
}

TEST_CASE(
    "docs/recipes.md lists every key with the type, default and meaning that the program has") {
  TempDir dir;
  const std::string recipe = write_recipe(dir.path()).string();
  const std::string page = read_file(MM_TEST_DATA "/../docs/recipes.md");
  std::istringstream reference(mmtrain(dir, {"check", recipe, "--reference"}).output);
  for (std::string line; std::getline(reference, line);) {
    // Some defaults follow from other keys ("default: 4 x hidden"): the page shows the quick
    // start's.
    if (line.starts_with("| `") && line.find("(default:") == std::string::npos)
      CHECK_MESSAGE(page.find(line) != std::string::npos, line);
  }
}
