#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "tests/text/fixtures.h"

using namespace mm;
using namespace mm::text;
using mm::text::testing::Ids;
using mm::text::testing::oracle_tokenizer;

namespace {

const Json& expectations() {
  static const Json e =
      parse_json(mm::text::testing::fixture("oracles/tokenizers/expected.json"), "expected.json");
  return e;
}

void check_bpe(const std::string& name) {
  const Json& want = expectations().at("tokenizers").at(name);
  const auto tokenizer = oracle_tokenizer(want.at("file").get<std::string>(), {.extra_marks = {}});
  CHECK(tokenizer->vocab_size() == want.at("vocab").get<int>());
  CHECK(tokenizer->adds_bos() == want.at("adds_bos").get<bool>());
  for (const auto& [mark, id] : want.at("special").items())
    CHECK(tokenizer->piece_to_id(mark) == id.get<int>());
  for (size_t i = 0; i < want.at("rows").size(); ++i) {
    const Json& row = want["rows"][i];
    const auto text = expectations().at("strings")[i].get<std::string>();
    CAPTURE(text);
    Ids ids = tokenizer->encode_marked(text).ids;
    CHECK(tokenizer->decode(ids) == row.at("decoded").get<std::string>());
    CHECK(tokenizer->decode(ids, true) == row.at("decoded_keep_special").get<std::string>());
    if (tokenizer->adds_bos()) ids.insert(ids.begin(), tokenizer->bos_id());
    CHECK(ids == row.at("ids").get<Ids>());
  }
}

void check_sentencepiece(const std::string& name) {
  const Json& want = expectations().at("tokenizers").at(name);
  const auto tokenizer = oracle_tokenizer(want.at("file").get<std::string>(), {.extra_marks = {}});
  CHECK(tokenizer->vocab_size() == want.at("vocab").get<int>());
  CHECK(tokenizer->bos_id() == want.at("bos").get<int>());
  CHECK(tokenizer->eos_id() == want.at("eos").get<int>());
  CHECK(tokenizer->unk_id() == want.at("unk").get<int>());
  CHECK(tokenizer->pad_id() == want.at("pad").get<int>());
  for (size_t i = 0; i < want.at("rows").size(); ++i) {
    const Json& row = want["rows"][i];
    const auto text = expectations().at("strings")[i].get<std::string>();
    CAPTURE(text);
    CHECK(tokenizer->encode(text) == row.at("ids").get<Ids>());
    CHECK(tokenizer->decode(row.at("ids").get<Ids>()) == row.at("decoded").get<std::string>());
  }
}

void check_offsets(const Tokenizer& tokenizer) {
  for (const Json& s : expectations().at("strings")) {
    const auto text = s.get<std::string>();
    CAPTURE(text);
    for (const Encoding& e : {tokenizer.encode_text(text), tokenizer.encode_marked(text)}) {
      REQUIRE(e.ids.size() == e.begin_byte.size());
      CHECK(std::is_sorted(e.begin_byte.begin(), e.begin_byte.end()));
      if (!e.begin_byte.empty()) CHECK(e.begin_byte.back() <= text.size());
    }
  }
}

}  // namespace

TEST_CASE("oracle tokenizers: GPT-2 ids and texts are exact") { check_bpe("bpe_gpt2"); }
TEST_CASE("oracle tokenizers: Llama 3 ids and texts are exact") { check_bpe("bpe_llama3"); }
TEST_CASE("oracle tokenizers: Qwen2 ids and texts are exact") { check_bpe("bpe_qwen2"); }
TEST_CASE("oracle tokenizers: SentencePiece BPE ids and texts are exact") {
  check_sentencepiece("sp_llama2");
}
TEST_CASE("oracle tokenizers: SentencePiece unigram ids and texts are exact") {
  check_sentencepiece("sp_t5");
}

TEST_CASE(
    "oracle tokenizers: SentencePiece with marks cut out first, dummy blank everywhere and at the "
    "start only") {
  for (const bool everywhere : {true, false}) {
    const auto tokenizer = oracle_tokenizer(
        "sp_llama2/tokenizer.model",
        {.dummy_prefix = everywhere ? DummyPrefix::kEverywhere : DummyPrefix::kFirstOnly});
    const Json& want = expectations().at("tokenizers").at("sp_llama2");
    for (const auto& [mark, id] : want.at("marks").items())
      CHECK(tokenizer->piece_to_id(mark) == id.get<int>());
    for (size_t i = 0; i < want.at("rows").size(); ++i) {
      const auto text = expectations().at("strings")[i].get<std::string>();
      CAPTURE(text);
      const char* key = everywhere ? "ids_marks_prefix_everywhere" : "ids_marks_prefix_first_only";
      CHECK(tokenizer->encode_marked(text).ids == want["rows"][i].at(key).get<Ids>());
    }
  }
}

TEST_CASE("oracle tokenizers: offsets never decrease and stay inside the text") {
  for (const std::string file :
       {"bpe_gpt2/tokenizer.json", "bpe_llama3/tokenizer.json", "bpe_qwen2/tokenizer.json",
        "sp_llama2/tokenizer.model", "sp_t5/spiece.model"}) {
    check_offsets(*oracle_tokenizer(file));
  }
}
