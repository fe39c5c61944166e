#include <doctest/doctest.h>
#include <zlib.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/html.h"
#include "lib/text/tiktoken.h"
#include "tests/text/fixtures.h"

using namespace mm;
using namespace mm::text;
using mm::text::testing::fixture;
using mm::text::testing::Ids;

namespace {

std::string line(std::string_view piece, int rank) {
  return base64(std::as_bytes(std::span(piece.data(), piece.size()))) + " " + std::to_string(rank) +
         "\n";
}

// All bytes, then `pieces`.
std::string ranks(const std::vector<std::string>& pieces) {
  std::string out;
  for (int b = 0; b < 256; ++b) out += line(std::string(1, static_cast<char>(b)), b);
  for (size_t i = 0; i < pieces.size(); ++i) out += line(pieces[i], 256 + static_cast<int>(i));
  return out;
}

std::string gzipped(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

const std::string kClip =
    "\"bpe_simple_vocab_16e6.txt#version: 0.2\nc a\nca t</w>\n1 2</w>\nt h\nth e</w>\n";

std::string refusal(const std::string& content) {
  try {
    parse_tokenizer(content, "file");
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("kinds are told by content") {
  CHECK(sniff_tokenizer("{ \"a\": 1}") == TokenizerKind::kTokenizerJson);
  CHECK(sniff_tokenizer("IQ== 0\nIg== 1\n") == TokenizerKind::kTiktoken);
  CHECK(sniff_tokenizer(kClip) == TokenizerKind::kClip);
  CHECK(sniff_tokenizer(gzipped(kClip)) == TokenizerKind::kClip);
  CHECK(sniff_tokenizer("IQ== x\n") == TokenizerKind::kSentencePiece);
  CHECK(sniff_tokenizer(fixture("oracles/tokenizers/sp_llama2/tokenizer.model")) ==
        TokenizerKind::kSentencePiece);
}

TEST_CASE("tiktoken: a copy's name tells its scheme again") {
  CHECK(tokenizer_copy_name(TokenizerKind::kTiktoken, "llama3") == "tokenizer.llama3.tiktoken");
  CHECK(scheme_of_name("a/b/tokenizer.llama3.tiktoken") == "llama3");
  CHECK(scheme_of_name("cl100k_base.tiktoken").empty());
  CHECK(scheme_of_name("tokenizer.model").empty());
  CHECK(tokenizer_copy_name(TokenizerKind::kClip, "") == "tokenizer.clip.txt.gz");
}

TEST_CASE("tiktoken: Llama 3's marks and begin token, and a mark in text is text") {
  const auto tokenizer = parse_tokenizer(ranks({"he", "hel"}), "file", {.scheme = "llama3"});
  CHECK(tokenizer->bos_id() == 258);
  CHECK(tokenizer->adds_bos());
  CHECK(tokenizer->piece_to_id("<|eot_id|>") == 267);
  CHECK(tokenizer->piece_to_id("<|image|>") == 269);
  CHECK(tokenizer->piece_to_id("<|reserved_special_token_245|>") == 513);
  CHECK(tokenizer->image_id() == 514);
  CHECK(tokenizer->encode_whole("hel<|eot_id|>") == Ids{258, 257, 267});
  CHECK(tokenizer->encode("<|eot_id|>").size() > 1);
}

TEST_CASE("tiktoken: what is wrong is refused with its line") {
  CHECK(refusal(ranks({"he"}) + "he 3\n").find(":258:") != std::string::npos);
  CHECK(refusal(ranks({"he", "he"})).find("twice") != std::string::npos);
  CHECK(refusal("IQ== 0\nIg== 1\n").find("0x00") != std::string::npos);
  CHECK(refusal(ranks({"he"})).find("257 ranks is not known; name its scheme") !=
        std::string::npos);
  CHECK_THROWS_AS(parse_tokenizer(ranks({}), "file", {.scheme = "gpt7"}), UsageError);
  CHECK(tiktoken_schemes().size() == 5);
}

TEST_CASE("CLIP: lower case, ends of words, begin and end tokens, gzipped or not") {
  for (const std::string& content : {kClip, gzipped(kClip)}) {
    const auto tokenizer = parse_tokenizer(content, "file");
    CHECK(tokenizer->vocab_size() == 512 + 5 + 2 + 1);
    CHECK(tokenizer->piece_to_id("!") == 0);
    CHECK(tokenizer->piece_to_id("~") == 93);
    CHECK(tokenizer->piece_to_id("\u0120") == 220);
    CHECK(tokenizer->piece_to_id("!</w>") == 256);
    CHECK(tokenizer->piece_to_id("cat</w>") == 513);
    const Ids ids = tokenizer->encode_whole(" The\t CAT ");
    CHECK(ids == Ids{517, 516, 513, 518});
    CHECK(tokenizer->decode(ids) == "the cat");
    CHECK(tokenizer->encode("12") == Ids{256 + 16, 256 + 17});
  }
}

TEST_CASE("CLIP: damaged files are refused") {
  std::string zipped = gzipped(kClip);
  CHECK(refusal(zipped.substr(0, zipped.size() / 2)).find("gzip") != std::string::npos);
  zipped[20] ^= 0x55;
  CHECK(refusal(zipped) != "accepted");
  CHECK(refusal(gzipped("hello")).find("CLIP") != std::string::npos);
  CHECK(refusal(kClip + "nosuch pair\n").find("merge 5") != std::string::npos);
  CHECK(refusal(kClip + "one\n") != "accepted");
  CHECK(refusal(kClip + "c a\n").find("already") != std::string::npos);
  CHECK(refusal(gzipped(std::string(size_t{70} << 20, 'a'))).find("more than") !=
        std::string::npos);
}

TEST_CASE("SentencePiece: control pieces are marks") {
  const auto tokenizer = testing::oracle_tokenizer("sp_llama2/tokenizer.model");
  CHECK(tokenizer->encode_marked("<s></s>").ids == Ids{1, 2});
}

TEST_CASE("SentencePiece: words remembered one by one give what the library gives the whole text") {
  // A sign of a blank in the text turns the short way off; behind the last word it changes nothing
  // before it.
  for (const auto dummy : {DummyPrefix::kEverywhere, DummyPrefix::kFirstOnly}) {
    const auto tokenizer =
        testing::oracle_tokenizer("sp_llama2/tokenizer.model", {.dummy_prefix = dummy});
    for (const bool at_start : {true, false}) {
      for (const std::string& text :
           {std::string("hello world"), std::string("  two  blanks "), std::string(" "),
            std::string("caf\u00E9 \U0001F600  x\n y"), std::string("12 345 a\xFF b")}) {
        CAPTURE(text);
        const Encoding fast = tokenizer->encode_text(text, at_start);
        const Encoding slow = tokenizer->encode_text(text + "\n\u2581", at_start);
        const size_t newline = slow.ids.size() - fast.ids.size();
        CHECK(newline >= 1);
        CHECK(std::equal(fast.ids.begin(), fast.ids.end(), slow.ids.begin()));
        CHECK(std::equal(fast.begin_byte.begin(), fast.begin_byte.end(), slow.begin_byte.begin()));
        CHECK(tokenizer->encode_text(text, at_start).ids == fast.ids);
      }
    }
  }
}
