// Tokenizers as vocab.json and merges.txt. fixtures/clip is a small one with CLIP's order of ids;
// clip_expected.json has what Hugging Face's CLIPTokenizer makes of it, GPT-2's is the oracle's.
#include "lib/text/vocab_merges.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/text/special_tokens.h"
#include "tests/base/temp_dir.h"
#include "tests/text/fixtures.h"

using namespace mm;
using namespace mm::text;
using mm::test::TempDir;
using mm::text::testing::fixture;
using mm::text::testing::Ids;
namespace fs = std::filesystem;

namespace {

fs::path clip_directory() { return fs::path(MM_TEST_DATA) / "text/fixtures/clip"; }

/// A copy of the CLIP tokenizer that may be changed.
fs::path copy_of_clip(const TempDir& dir) {
  fs::create_directories(dir / "clip");
  for (const char* name :
       {"vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json"})
    write_file_atomic(dir / "clip" / name, read_file(clip_directory() / name));
  return dir / "clip";
}

/// The oracle's GPT-2 tokenizer in the older layout.
fs::path old_gpt2(const TempDir& dir) {
  const Json json = parse_json(fixture("oracles/tokenizers/bpe_gpt2/tokenizer.json"), "gpt2");
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : json.at("model").at("merges"))
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  fs::create_directories(dir / "gpt2");
  write_file_atomic(dir / "gpt2/vocab.json", json.at("model").at("vocab").dump());
  write_file_atomic(dir / "gpt2/merges.txt", merges);
  return dir / "gpt2";
}

std::string refusal(const fs::path& directory) {
  try {
    load_tokenizer(directory);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("vocab.json and merges.txt: CLIP's ids and texts are exact") {
  const auto tokenizer = load_tokenizer(clip_directory(), {.extra_marks = {}});
  CHECK(tokenizer->vocab_size() == 764);
  CHECK(tokenizer->bos_id() == 762);
  CHECK(tokenizer->eos_id() == 763);
  CHECK(tokenizer->piece_to_id("<|endoftext|>") == 763);
  const Json expected = parse_json(fixture("text/fixtures/clip_expected.json"), "expected");
  REQUIRE(expected.at("rows").size() > 20);
  for (const Json& row : expected.at("rows")) {
    const auto text = row.at("text").get<std::string>();
    CAPTURE(text);
    const Ids ids = tokenizer->encode_whole(text);
    CHECK(ids == row.at("ids").get<Ids>());
    CHECK(tokenizer->decode(ids) == row.at("decoded").get<std::string>());
  }
  // A mark in a stranger's text is text.
  CHECK(tokenizer->encode("<|endoftext|>").size() > 1);
}

TEST_CASE(
    "vocab.json and merges.txt: GPT-2's are the oracle's, a begin token where it is asked for") {
  const TempDir dir;
  const fs::path old = old_gpt2(dir);
  const auto tokenizer = load_tokenizer(old / "vocab.json", {.extra_marks = {}});
  const Json expected = parse_json(fixture("oracles/tokenizers/expected.json"), "expected");
  const Json& rows = expected.at("tokenizers").at("bpe_gpt2").at("rows");
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto text = expected.at("strings")[i].get<std::string>();
    CAPTURE(text);
    const Ids ids = tokenizer->encode_marked(text).ids;
    CHECK(ids == rows[i].at("ids").get<Ids>());
    CHECK(tokenizer->decode(ids) == rows[i].at("decoded").get<std::string>());
  }
  CHECK(!tokenizer->adds_bos());
  CHECK(tokenizer->eos_id() == 900);  // not in vocab.json: the next id
  write_file_atomic(old / "tokenizer_config.json",
                    R"({"tokenizer_class": "GPT2TokenizerFast", "add_bos_token": true})");
  CHECK(load_tokenizer(old)->adds_bos());
}

TEST_CASE("vocab.json and merges.txt: added tokens from every file that names some") {
  const TempDir dir;
  const fs::path clip = copy_of_clip(dir);
  write_file_atomic(clip / "added_tokens.json", R"({"<sks>": 770})");
  Json config = read_json_file(clip / "tokenizer_config.json");
  config["added_tokens_decoder"] = {
      {"768", {{"content", "<style>"}, {"special", true}, {"lstrip", true}}}};
  config["additional_special_tokens"] = {"<mark>"};
  write_file_atomic(clip / "tokenizer_config.json", config.dump());
  const auto tokenizer = load_tokenizer(clip, {.extra_marks = {}});
  CHECK(tokenizer->piece_to_id("<sks>") == 770);
  CHECK(tokenizer->piece_to_id("<style>") == 768);
  CHECK(tokenizer->piece_to_id("<mark>") == 771);
  CHECK(tokenizer->vocab_size() == 772);
  CHECK(tokenizer->encode_whole("a <style> <sks>") == Ids{762, 320, 768, 770, 763});
  // The same files, the same text; what was composed is read back alike.
  CHECK(compose_tokenizer_json(clip) == compose_tokenizer_json(clip));
  const auto again = parse_tokenizer(read_tokenizer(clip), "again", {.extra_marks = {}});
  CHECK(again->encode_whole("a <mark> Cat!") == tokenizer->encode_whole("a <mark> Cat!"));
}

TEST_CASE("special tokens: additional ones of the map come behind those of the config") {
  const TempDir dir;
  const fs::path gpt2 = old_gpt2(dir);
  write_file_atomic(gpt2 / "special_tokens_map.json",
                    R"({"additional_special_tokens": ["<b>", "<a>"]})");
  write_file_atomic(gpt2 / "tokenizer_config.json", R"({"additional_special_tokens": ["<a>"]})");
  const auto old = load_tokenizer(gpt2, {.extra_marks = {}});
  REQUIRE(old->piece_to_id("<a>"));
  CHECK(old->piece_to_id("<b>") == *old->piece_to_id("<a>") + 1);
  write_file_atomic(gpt2 / "tokenizer_config.json",
                    R"({"additional_special_tokens": ["<a>"], "added_tokens_decoder": {}})");
  CHECK(!load_tokenizer(gpt2, {.extra_marks = {}})->piece_to_id("<b>"));
}

TEST_CASE("special tokens: special_tokens_map.json stands over a config without added tokens") {
  const TempDir dir;
  const fs::path gpt2 = old_gpt2(dir);
  write_file_atomic(gpt2 / "special_tokens_map.json",
                    R"({"pad_token": {"content": "<map>"}, "sep_token": "<sep>"})");
  Json config{{"pad_token", "<config>"}, {"mask_token", "<mask>"}};
  write_file_atomic(gpt2 / "tokenizer_config.json", config.dump());
  CHECK(read_special_tokens(gpt2).of("mask_token") == "<mask>");
  CHECK(read_special_tokens(gpt2).of("cls_token").is_null());
  const auto old = load_tokenizer(gpt2, {.extra_marks = {}});
  CHECK(old->piece_to_id("<sep>") == 901);  // before pad_token, as transformers adds them
  CHECK(old->piece_to_id("<map>") == 902);
  CHECK(!old->piece_to_id("<config>"));
  config["added_tokens_decoder"] = Json::object();
  write_file_atomic(gpt2 / "tokenizer_config.json", config.dump());
  const auto newer = load_tokenizer(gpt2, {.extra_marks = {}});
  CHECK(newer->piece_to_id("<config>") == 901);
  CHECK(!newer->piece_to_id("<map>"));
  CHECK(!newer->piece_to_id("<sep>"));
}

TEST_CASE("vocab.json and merges.txt: without settings CLIP is told by the ends of its words") {
  const TempDir dir;
  const fs::path clip = copy_of_clip(dir);
  fs::remove(clip / "tokenizer_config.json");
  fs::remove(clip / "special_tokens_map.json");
  const auto tokenizer = load_tokenizer(clip, {.extra_marks = {}});
  CHECK(tokenizer->encode_whole("A CAT") == Ids{762, 320, 517, 339, 763});
  CHECK(find_tokenizer(clip) == clip / "vocab.json");
  write_file_atomic(clip / "tokenizer.json", fixture("text/fixtures/toy_words.json"));
  CHECK(find_tokenizer(clip) == clip / "tokenizer.json");
  CHECK(!find_tokenizer(dir.path()));
}

TEST_CASE("vocab.json and merges.txt: what is wrong is refused with its file") {
  const TempDir dir;
  const fs::path clip = copy_of_clip(dir);
  const auto with = [&](const char* name, const std::string& content) {
    const std::string before = fs::exists(clip / name) ? read_file(clip / name) : "";
    write_file_atomic(clip / name, content);
    std::string message = refusal(clip);
    if (before.empty())
      fs::remove(clip / name);
    else
      write_file_atomic(clip / name, before);
    return message;
  };
  const auto says = [](const std::string& message, const char* part) {
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  says(with("merges.txt", "a b c\n"), "merges.txt: \"a b c\" is no merge of two pieces");
  says(with("merges.txt", "a \xFF\n"), "merges.txt: ");
  says(with("merges.txt", "zz qq\n"), "names a piece that the vocabulary lacks");
  says(with("vocab.json", "[1]"), "vocab.json: not an object");
  says(with("vocab.json", R"({"a": -1})"), "expected a whole number");
  says(with("vocab.json", R"({"a": 1)"), "vocab.json");
  says(with("vocab.json", R"({"a": 1, "b": 1})"), "the id 1");
  says(with("tokenizer_config.json", R"({"tokenizer_class": "BartTokenizer"})"),
       "BartTokenizer with vocab.json and merges.txt is not supported");
  says(with("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "y"}}})"),
       "is no id of an added token");
  says(with("special_tokens_map.json", R"({"bos_token": {"text": "y"}})"),
       "a special token without text");
  says(with("special_tokens_map.json", R"({"bos_token": 7})"), "a special token without text");
  says(with("added_tokens.json", R"({"x": 320})"),
       R"(added_tokens.json: "x" has the id 320, which is that of "a</w>")");
  says(with("added_tokens.json", R"({"x": "y"})"), "added_tokens.json: \"x\" has the id");
  says(refusal(dir.path()), "no tokenizer in it");
}
