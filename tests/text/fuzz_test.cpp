#include <doctest/doctest.h>

#include <cstdlib>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/random.h"
#include "tests/text/fixtures.h"

using namespace mm;
using namespace mm::text;

namespace {

// MM_LONG=1 asks for a hundred times as many.
int times(int count) { return std::getenv("MM_LONG") != nullptr ? 100 * count : count; }

void load_damaged_copy(std::string copy, const Philox& draw, const TokenizerOptions& options,
                       int& refused) {
  // Any bytes, or digits, which leave more of a text file readable.
  const bool digits = draw.below(97, 2) == 0;
  for (uint64_t k = 0; k < 1 + draw.below(0, 3); ++k)
    copy[draw.below(2 * k + 1, copy.size())] =
        static_cast<char>(digits ? '0' + draw.below(2 * k + 2, 10) : draw.below(2 * k + 2, 256));
  if (draw.below(99, 8) == 0) copy.resize(draw.below(98, copy.size()));
  try {
    const auto tokenizer = parse_tokenizer(copy, "damaged", options);
    const auto ids =
        tokenizer->encode_marked("USER: caf\u00E9 \uFF21 <image>\n12 e\u0301 \U0001F600 it's</s>");
    tokenizer->decode(ids.ids, true);
  } catch (const DataError& e) {
    CHECK(std::string(e.what()).size() > 10);
    ++refused;
  }
}

// Damaged copies of a tokenizer file are refused with a DataError, or work.
int load_damaged_copies(const std::string& whole, uint64_t seed, int copies,
                        const TokenizerOptions& options = {}) {
  const Philox random(seed, "tokenizer fuzz");
  int refused = 0;
  for (int i = 0; i < copies; ++i)
    load_damaged_copy(whole, random.child(static_cast<uint64_t>(i)), options, refused);
  return refused;
}

std::string oracle(const std::string& file) {
  return testing::fixture("oracles/tokenizers/" + file);
}

const Json& cases() {
  static const Json list =
      parse_json(testing::fixture("text/fixtures/tokenizer_cases.json"), "tokenizer_cases.json");
  return list;
}

std::unique_ptr<Tokenizer> load(const Json& entry) {
  if (entry.contains("tokenizer")) return parse_tokenizer(entry.at("tokenizer").dump(), "case");
  return parse_tokenizer(entry.at("content").get<std::string>(), "case",
                         {.scheme = entry.at("scheme").get<std::string>()});
}

// Text of a stranger: pieces of everything that is odd, valid or not.
std::string odd_text(const Philox& draw, bool valid) {
  static const std::vector<std::string> kValid = {" ",
                                                  "  ",
                                                  "\n",
                                                  "hello",
                                                  "\u0301",
                                                  "\uFEFF",
                                                  std::string(1, '\0'),
                                                  "\u2581",
                                                  "<0x41>",
                                                  "<s>",
                                                  "<|im_end|>",
                                                  "\U0001F469\u200D\U0001F466",
                                                  "\uFFFD",
                                                  "\u1112\u1161",
                                                  "'LL",
                                                  "12",
                                                  "\u0130",
                                                  "\uFDFA",
                                                  "a",
                                                  "\u00E9",
                                                  "\u0CC6\u0CC2\u0CD5",
                                                  "\U0010FFFF",
                                                  "\x7F",
                                                  "\u00AD"};
  static const std::vector<std::string> kBroken = {"\xFF",     "\xED\xA0\xBD", "\xC0\xAF",
                                                   "\xE4\xB8", "\x80",         "\xF4\x90\x80\x80"};
  std::string out;
  const uint64_t parts = 1 + draw.below(0, 12);
  for (uint64_t i = 0; i < parts; ++i) {
    const bool broken = !valid && draw.below(3 * i + 1, 4) == 0;
    const auto& from = broken ? kBroken : kValid;
    out += from[draw.below(3 * i + 2, from.size())];
  }
  return out;
}

}  // namespace

TEST_CASE("tokenizers: damaged GPT-2 files are refused or work") {
  CHECK(load_damaged_copies(oracle("bpe_gpt2/tokenizer.json"), 1, times(100)) < times(100));
}
TEST_CASE("tokenizers: damaged Qwen2 files are refused or work") {
  CHECK(load_damaged_copies(oracle("bpe_qwen2/tokenizer.json"), 2, times(100)) < times(100));
}
TEST_CASE("tokenizers: damaged SentencePiece BPE models are refused or work") {
  CHECK(load_damaged_copies(oracle("sp_llama2/tokenizer.model"), 3, times(200)) < times(200));
}
TEST_CASE("tokenizers: damaged SentencePiece unigram models are refused or work") {
  CHECK(load_damaged_copies(oracle("sp_t5/spiece.model"), 4, times(100)) < times(100));
}
TEST_CASE("tokenizers: damaged files of every kind are refused or work") {
  uint64_t seed = 5;
  int refused = 0;
  for (const Json& entry : cases()) {
    const bool json = entry.contains("tokenizer");
    const std::string content =
        json ? entry.at("tokenizer").dump() : entry.at("content").get<std::string>();
    const std::string scheme = json ? "" : entry.at("scheme").get<std::string>();
    refused += load_damaged_copies(content, seed++, times(20), {.scheme = scheme});
  }
  CHECK(refused < times(20) * static_cast<int>(cases().size()));
}

TEST_CASE(
    "tokenizers: any bytes are encoded or refused, offsets are in order, text comes back valid") {
  uint64_t seed = 100;
  for (const Json& entry : cases()) {
    const auto tokenizer = load(entry);
    const Philox random(seed++, "odd text");
    for (int i = 0; i < times(40); ++i) {
      const std::string text = odd_text(random.child(static_cast<uint64_t>(i)), false);
      const Encoding e = i % 2 == 0 ? tokenizer->encode_marked(text) : tokenizer->encode_text(text);
      REQUIRE(e.ids.size() == e.begin_byte.size());
      CHECK(std::is_sorted(e.begin_byte.begin(), e.begin_byte.end()));
      if (!text.empty() && !e.begin_byte.empty()) CHECK(e.begin_byte.back() < text.size());
      CHECK(parse_json("[" + Json(tokenizer->decode(e.ids, true)).dump() + "]", "text").size() ==
            1);
    }
  }
}

TEST_CASE("byte-level tokenizers: decode(encode(x)) is x for any valid text") {
  for (const std::string file : {"bpe_gpt2/tokenizer.json", "bpe_llama3/tokenizer.json"}) {
    const auto tokenizer = testing::oracle_tokenizer(file);
    const Philox random(7, "round trip");
    for (int i = 0; i < times(300); ++i) {
      const std::string text = odd_text(random.child(static_cast<uint64_t>(i)), true);
      CHECK(tokenizer->decode(tokenizer->encode(text), true) == text);
      CHECK(tokenizer->decode(tokenizer->encode_marked(text).ids, true) == text);
    }
  }
}
