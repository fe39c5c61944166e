#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "tests/data/mmshard_process.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

/// in.jsonl of ten good rows and the flags that pack it.
std::string prepare(const TempDir& dir) {
  write_jsonl(dir / "in.jsonl", good_rows(10));
  return fmt::format(
      "pack in.jsonl --out set --image-root '{}/field' --tokenizer '{}' --image-side 8 --patch 4 "
      "--quiet",
      MM_TEST_DATA, toy_tokenizer().string());
}

}  // namespace

TEST_CASE("mmshard pack: says what it made, then that it is there, other options end with 2") {
  const TempDir dir;
  const std::string pack = prepare(dir);
  const Output first = mmshard(dir, pack);
  CHECK(first.code == 0);
  CHECK(first.out.starts_with("set: 10 samples, 10 pictures, "));
  CHECK(first.out.find("1 shards; 0 bad, 0 skipped\n") != std::string::npos);
  CHECK(first.err.empty());
  const Output again = mmshard(dir, pack + " --json");
  CHECK(again.code == 0);
  const mm::Json json = mm::parse_json(again.out, "stdout");
  CHECK(json["schema"] == 1);
  CHECK(json["was_there"] == true);
  CHECK(json["counts"]["samples"] == 10);
  const std::string same_source = "pack ./" + pack.substr(pack.find("in.jsonl"));
  CHECK(mmshard(dir, same_source).code == 0);
  const Output other = mmshard(dir, pack + " --filter box");
  CHECK(other.code == 2);
  CHECK(other.out.empty());
  CHECK(other.err ==
        "mmshard: error: set: already packed with other options (pictures.filter: \"bicubic\" "
        "there, \"box\" now); give "
        "another --out, or delete it\n");
}

TEST_CASE(
    "mmshard pack: too many bad samples end with 65 and their names, nothing left as if good") {
  const TempDir dir;
  const std::string pack = prepare(dir);
  write_jsonl(dir / "in.jsonl", {{"rgba.png", "a cat"}, {"truncated.jpg", "a dog"}});
  const Output refused = mmshard(dir, pack);
  CHECK(refused.code == 65);
  CHECK(refused.out.empty());
  CHECK(refused.err.starts_with("mmshard: error: 1 of 2 samples are bad (50 %), the limit is 1 %"));
  CHECK(refused.err.find("truncated.jpg") != std::string::npos);
  CHECK(!fs::exists(dir / "set"));
  CHECK(mmshard(dir, pack + " --bad-limit 50").code == 0);
}

TEST_CASE("mmshard: wrong usage is one line and code 2") {
  const TempDir dir;
  const std::string pack = prepare(dir);
  for (const std::string& arguments :
       {std::string(), std::string("pakc"), std::string("pack"), pack + " --geometry round",
        pack + " --template x", pack + " --no-such", pack + " --patch 9"}) {
    const Output output = mmshard(dir, arguments);
    CHECK(output.code == 2);
    CHECK(output.out.empty());
    CHECK(output.err.starts_with("mmshard: error: "));
    CHECK(std::count(output.err.begin(), output.err.end(), '\n') == 1);
  }
}

TEST_CASE("mmshard: a verb or an option that does not exist is named, with the likely one") {
  const TempDir dir;
  CHECK(mmshard(dir, "pakc").err ==
        "mmshard: error: \"pakc\" is no verb; did you mean \"pack\"?; see `mmshard --help`\n");
  CHECK(mmshard(dir, "pack in.jsonl --fliter box").err ==
        "mmshard: error: pack has no option --fliter; did you mean --filter?; see `mmshard pack "
        "--help`\n");
  CHECK(mmshard(dir, "info set --zzzzzz=4").err ==
        "mmshard: error: info has no option --zzzzzz; see `mmshard info --help`\n");
  CHECK(mmshard(dir, "export set --out x").err.find("--to is required (see `mmshard export") !=
        std::string::npos);
}

TEST_CASE("mmshard info, plan, show, verify: text, JSON and exit codes") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 20);
  const Output info = mmshard(dir, "info set");
  CHECK(info.code == 0);
  CHECK(info.out.find("samples    20 (10 text only), 0 bad, 0 skipped\n") != std::string::npos);
  CHECK(mm::parse_json(mmshard(dir, "info set --json").out, "stdout")["schema"] == 1);

  const Output plan =
      mmshard(dir, "plan set --sequence-length 32 --packs-per-step 2 --ranks 2 --json");
  CHECK(plan.code == 0);
  const mm::Json report = mm::parse_json(plan.out, "stdout");
  CHECK(report["samples"] == 20);
  CHECK(report["padding"].get<double>() < 0.2);
  CHECK(mmshard(dir, "plan set --sequence-length 32 --ranks 2")
            .out.starts_with("epoch 0: 20 samples in "));
  const Output too_short = mmshard(dir, "plan set --sequence-length 5");
  CHECK(too_short.code == 65);
  CHECK(too_short.err.find("the sequence length is 5") != std::string::npos);

  fs::copy_file(toy_tokenizer(), dir / "set/tokenizer.model", fs::copy_options::overwrite_existing);
  const Output show = mmshard(dir, "show set --out page.html --count 5");
  CHECK(show.code == 0);
  CHECK(show.out == "page.html: 5 of 20 samples\n");
  CHECK(mm::read_file(dir / "page.html").starts_with("<!DOCTYPE html>"));
  CHECK(mmshard(dir, "show set --out page.html --samples 20").code == 2);
}

TEST_CASE("mmshard verify: 0 for a sound set, 65 and a line for each problem of a damaged one") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 20);
  const Output sound = mmshard(dir, "verify set");
  CHECK(sound.code == 0);
  CHECK(sound.out.ends_with("20 samples: sound\n"));
  std::string shard = mm::read_file(dir / "set/shard-00000.mms");
  shard[70] ^= 1;
  mm::write_file_atomic(dir / "set/shard-00000.mms", shard);
  const Output damaged = mmshard(dir, "verify set --threads 2");
  CHECK(damaged.code == 65);
  CHECK(damaged.out.find("shard-00000.mms: content differs") != std::string::npos);
  CHECK(damaged.out.ends_with("2 problems\n"));
  CHECK(mm::parse_json(mmshard(dir, "verify set --json").out, "stdout")["sound"] == false);
  CHECK(mmshard(dir, "verify nowhere").code == 65);
}

TEST_CASE("mmshard: help names every verb, each verb has examples, and LibTorch is not needed") {
  const TempDir dir;
  const std::string help = mmshard(dir, "--help").out;
  for (const char* verb : {"pack", "plan", "info", "show", "verify"}) {
    CHECK(help.find(verb) != std::string::npos);
    const Output output = mmshard(dir, std::string(verb) + " --help");
    CHECK(output.code == 0);
    CHECK(output.out.find("Examples:\n  mmshard " + std::string(verb)) != std::string::npos);
  }
  CHECK(std::system(fmt::format("ldd '{}/mmshard' | grep -q torch", MM_BIN_DIR).c_str()) != 0);
}
