#include "lib/run/caption_tokenizers.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "tests/run/online_runs.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;
namespace fs = std::filesystem;

TEST_CASE("caption tokenizers: special_tokens_map.json says the padding, unless the newer file") {
  TempDir dir;
  const fs::path clip = write_encoder(dir / "clip", tiny_clip_config(8, 0), toy(), 3);
  const auto tokenizer = mm::text::load_tokenizer(toy());
  const auto write = [&](const char* file, int64_t pad, mm::Json json) {
    json["pad_token"] = tokenizer->id_to_piece(pad);
    mm::write_file_atomic(clip / file, json.dump());
  };
  const auto pad_id = [&] { return open_caption_tokenizers({clip}, 0, toy()).writing[0].pad_id; };
  write("tokenizer_config.json", 10, mm::Json::object());
  CHECK(pad_id() == 10);
  write("special_tokens_map.json", 11, mm::Json::object());
  CHECK(pad_id() == 11);
  write("tokenizer_config.json", 10, {{"added_tokens_decoder", mm::Json::object()}});
  CHECK(pad_id() == 10);
}

TEST_CASE("caption tokenizers: a vocab.json of another kind does not hide a tokenizer.json") {
  TempDir dir;
  const std::vector<fs::path> text = three_encoders(dir);
  for (const char* name : {"vocab.json", "merges.txt"})
    fs::copy_file(fs::path(MM_TEST_DATA) / "text/fixtures/clip" / name, text[1] / name);
  mm::write_file_atomic(text[1] / "tokenizer_config.json",
                        R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  const CaptionTokenizers opened = open_caption_tokenizers(text, 9, toy());
  CHECK(opened.own[0] == nullptr);
  CHECK(opened.writing[1].tokenizer == mm::xxh3_128_hex(mm::read_file(dir / "reversed.json")));
  fs::remove(text[1] / "tokenizer.json");
  CHECK_THROWS_WITH_AS(open_caption_tokenizers(text, 9, toy()),
                       doctest::Contains("tokenizer_class PreTrainedTokenizer"), mm::DataError);
}

TEST_CASE("a resume that is refused for its encoders leaves the run's files as they were") {
  TempDir dir;
  const fs::path t5 = write_encoder(dir / "t5", tiny_t5_config(12), toy(), 5);
  const auto keys = joined(online_keys({t5}), {"stage.0.steps=2"});
  run_with(dir, "run", keys);
  const std::string recipe = mm::read_file(dir / "run/recipe.toml");
  fs::remove_all(t5);
  write_encoder(dir / "t5", tiny_t5_config(12), toy(), 6);
  CHECK_THROWS_WITH_AS(run_with(dir, "run", joined(keys, {"run.log_every=7"})),
                       doctest::Contains("trained on the output of another model.text_model"),
                       mm::Error);
  CHECK(mm::read_file(dir / "run/recipe.toml") == recipe);
}
