#include "lib/text/tokenizer.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/random.h"
#include "lib/text/byte_alphabet.h"
#include "lib/text/merges.h"
#include "tests/text/fixtures.h"

using namespace mm;
using namespace mm::text;
using mm::text::testing::fixture;
using mm::text::testing::Ids;
using mm::text::testing::replaced;

namespace {

std::string message_of(const std::string& content) {
  try {
    parse_tokenizer(content, "file.json");
  } catch (const DataError& e) {
    return e.what();
  }
  return "accepted";
}

std::unique_ptr<Tokenizer> metaspace(const std::string& scheme) {
  return parse_tokenizer(
      replaced(fixture("text/fixtures/toy_metaspace.json"), "\"first\"", "\"" + scheme + "\""),
      "metaspace");
}

}  // namespace

TEST_CASE("C16: spaces around special tokens") {
  const std::array texts = {"hello<image>world", "<image>world", "hello <image> world"};
  struct Case {
    std::string scheme;
    std::array<Ids, 3> ids;
  };
  for (const auto& [scheme, ids] : {Case{"first", {Ids{2, 1, 5}, {1, 5}, {2, 6, 1, 4}}},
                                    Case{"always", {Ids{2, 1, 4}, {1, 4}, {2, 6, 1, 4}}},
                                    Case{"never", {Ids{3, 1, 5}, {1, 5}, {3, 6, 1, 4}}}}) {
    const auto tokenizer = metaspace(scheme);
    for (size_t i = 0; i < texts.size(); ++i) {
      CAPTURE(scheme);
      CAPTURE(i);
      CHECK(tokenizer->encode_marked(texts[i]).ids == ids[i]);
    }
  }
}

TEST_CASE("word level: words, offsets, unknown words and the way back") {
  const auto tokenizer = testing::toy_words();
  const Encoding e = tokenizer->encode_text(" what\nis  frog ");
  CHECK(e.ids == Ids{7, 8, 3});
  CHECK(e.begin_byte == std::vector<uint32_t>{1, 6, 10});
  CHECK(tokenizer->decode(e.ids) == "what is <unk>");
  CHECK(tokenizer->decode(Ids{1, 7, 8, 2, 999}) == "what is");
  CHECK(tokenizer->decode(Ids{1, 7, 2}, true) == "<s> what </s>");
  CHECK(tokenizer->vocab_size() == 18);
  CHECK(tokenizer->image_id() == 6);
  CHECK(tokenizer->id_to_piece(11) == "cat");
  CHECK(tokenizer->id_to_piece(-1).empty());
  CHECK_FALSE(tokenizer->piece_to_id("frog"));
}

TEST_CASE("marks: one that the file lacks gets the next id") {
  const auto tokenizer =
      testing::oracle_tokenizer("bpe_gpt2/tokenizer.json", {.extra_marks = {"<image>", "<box>"}});
  CHECK(tokenizer->piece_to_id("<image>") == 901);
  CHECK(tokenizer->piece_to_id("<box>") == 902);
  CHECK(tokenizer->vocab_size() == 903);
  CHECK(tokenizer->encode_marked("<image>").ids == Ids{901});
  CHECK(tokenizer->encode("<image>").size() > 1);
}

TEST_CASE("pieces and ids are each other's inverse") {
  for (const std::string file : {"bpe_qwen2/tokenizer.json", "sp_llama2/tokenizer.model"}) {
    const auto tokenizer = testing::oracle_tokenizer(file);
    for (int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
      CAPTURE(id);
      CHECK(tokenizer->piece_to_id(tokenizer->id_to_piece(id)) == id);
    }
  }
}

TEST_CASE("byte alphabet: 256 spellings, all different, there and back") {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  CHECK(spelling_to_bytes(bytes_to_spelling(all)) == all);
  CHECK(bytes_to_spelling(" \n") == "\u0120\u010A");
  CHECK_FALSE(spelling_to_bytes(" "));
  CHECK_FALSE(spelling_to_bytes("\u4E00"));
}

TEST_CASE("merges: equal to trying the lowest rank, leftmost first, step by step") {
  MergeTable table;
  const Philox random(3, "merges");
  for (int32_t rank = 0; rank < 40; ++rank) {
    table.add(static_cast<int32_t>(random.below(2 * rank, 6 + rank / 2)),
              static_cast<int32_t>(random.below(2 * rank + 1, 6 + rank / 2)), {rank, 6 + rank});
  }
  for (uint64_t word = 0; word < 200; ++word) {
    std::vector<Symbol> symbols;
    for (uint32_t i = 0; i < 1 + random.below(1000 + word, word % 2 == 0 ? 30 : 90); ++i)
      symbols.push_back({static_cast<int32_t>(random.below(word * 64 + i, 6)), i});
    std::vector<Symbol> plain = symbols;
    while (true) {
      size_t best = 0;
      MergeTable::Rule rule{MergeTable::kNone, -1};
      for (size_t i = 0; i + 1 < plain.size(); ++i) {
        const auto r = table.find(plain[i].id, plain[i + 1].id);
        if (r.rank < rule.rank) {
          rule = r;
          best = i;
        }
      }
      if (rule.rank == MergeTable::kNone) break;
      plain[best].id = rule.id;
      plain.erase(plain.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
    std::vector<Symbol> fast = symbols;
    MergeRoom room;
    merge_symbols(fast, 0, table, room);
    REQUIRE(fast.size() == plain.size());
    for (size_t i = 0; i < fast.size(); ++i)
      CHECK((fast[i].id == plain[i].id && fast[i].begin == plain[i].begin));
  }
}

TEST_CASE("a word of a megabyte is encoded in reasonable time") {
  const auto tokenizer = testing::oracle_tokenizer("bpe_gpt2/tokenizer.json");
  const std::string text(1 << 20, 'a');
  CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
}

TEST_CASE("text that is not UTF-8 is encoded byte by byte and comes back marked as damaged") {
  const auto tokenizer = testing::oracle_tokenizer("bpe_qwen2/tokenizer.json");
  CHECK(tokenizer->decode(tokenizer->encode("a\xFF"
                                            "b \xE4\xB8")) == "a\uFFFDb \uFFFD");
  CHECK_NOTHROW(testing::oracle_tokenizer("sp_llama2/tokenizer.model")
                    ->encode("a\xFF"
                             "b"));
}

TEST_CASE("tokenizer.json: what is not known is refused by name") {
  const std::string gpt2 = fixture("oracles/tokenizers/bpe_gpt2/tokenizer.json");
  const std::string llama = fixture("oracles/tokenizers/bpe_llama3/tokenizer.json");
  const std::string words = fixture("text/fixtures/toy_words.json");
  const auto refuses = [](const std::string& content, std::string_view name) {
    CAPTURE(name);
    CHECK(message_of(content).find(name) != std::string::npos);
  };
  const auto normalizer = [&](const std::string& value) {
    return replaced(gpt2, "\"normalizer\": null", "\"normalizer\": " + value);
  };
  refuses(normalizer(R"({"type": "Fancy"})"), "Fancy");
  refuses(normalizer(R"({"type": "Sequence", "normalizers": [{"type": "Odd"}]})"), "Odd");
  refuses(normalizer(R"({"type": "Precompiled", "precompiled_charsmap": "AAAA"})"), "normaliser");
  refuses(normalizer(R"({"type": "Replace", "content": ""})"), "pattern");
  refuses(replaced(words, "WhitespaceSplit", "UnicodeScripts"), "UnicodeScripts");
  refuses(replaced(words, "\"WordLevel\"", "\"Characters\""), "Characters");
  refuses(replaced(llama, "{1,3}", "[a&&b]"), "intersection");
  refuses(replaced(llama, "{1,3}", "(?m:a)"), "group");
  refuses(replaced(llama, "{1,3}", "{1,3"), "");
  refuses(replaced(llama, "Isolated", "Sideways"), "Sideways");
  refuses(replaced(llama, "TemplateProcessing", "PairProcessing"), "PairProcessing");
  refuses(replaced(gpt2, "\"dropout\": null", "\"dropout\": 0.5"), "dropout");
  refuses(replaced(gpt2, "\"byte_fallback\": false", "\"byte_fallback\": true"), "byte_fallback");
  refuses(replaced(gpt2, "\"lstrip\": false", "\"lstrip\": 3"), "lstrip");
  refuses(replaced(gpt2, "\"type\": \"ByteLevel\",\n    \"add_prefix_space\": false",
                   "\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"ByteLevel\"}, "
                   "{\"type\": \"Digits\"}], \"x\": false"),
          "after ByteLevel");
}

TEST_CASE("tokenizer.json: broken files are refused with the file's name") {
  const std::string words = fixture("text/fixtures/toy_words.json");
  for (const std::string& content :
       {std::string("{\"a\""), std::string("{\"model\": 3}"),
        std::string("{\"model\": {\"type\": 7}}"), replaced(words, "\"cat\": 11", "\"cat\": 12"),
        replaced(words, "\"cat\": 11", "\"cat\": -1"),
        replaced(words, "\"cat\": 11", "\"cat\": 15999999"),
        replaced(words, "\"cat\": 11", "\"cat\": 1e99"),
        replaced(words, "\"cat\": 11", "\"cat\": \"x\""),
        replaced(words, "\"id\": \"<s>\"", "\"id\": \"<q>\""), std::string()}) {
    CAPTURE(content.substr(0, 40));
    CHECK(message_of(content).starts_with("file.json: "));
  }
  CHECK(message_of("{\"a\": " + std::string(100'000, '[')).starts_with("file.json: "));
}

TEST_CASE("SentencePiece: cut and foreign files are refused") {
  const std::string model = fixture("oracles/tokenizers/sp_llama2/tokenizer.model");
  for (const size_t bytes : {size_t{1}, size_t{100}, model.size() / 2, model.size() - 1})
    CHECK(message_of(model.substr(0, bytes)).starts_with("file.json: "));
  CHECK(message_of("hello world").starts_with("file.json: "));
  CHECK(message_of(fixture("field/rgba.png")).starts_with("file.json: "));
}

TEST_CASE("load_tokenizer: a missing file is a storage error") {
  CHECK_THROWS_AS(load_tokenizer("/nonexistent/tokenizer.model"), IoError);
}
