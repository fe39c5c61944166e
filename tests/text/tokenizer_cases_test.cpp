#include <doctest/doctest.h>

#include <cstdlib>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "tests/text/fixtures.h"

using namespace mm;
using namespace mm::text;
using mm::text::testing::Ids;

namespace {

// The file that tools/peers/make_tokenizer_cases.py wrote, or another of its making.
const Json& cases() {
  static const Json list = [] {
    const char* other = std::getenv("MM_TOKENIZER_CASES");
    const std::string text = other != nullptr
                                 ? read_file(other)
                                 : testing::fixture("text/fixtures/tokenizer_cases.json");
    return parse_json(text, "tokenizer_cases.json");
  }();
  return list;
}

bool is_of(const std::string& name, const std::vector<std::string>& kinds) {
  return std::ranges::any_of(kinds, [&](const auto& kind) { return name.starts_with(kind); });
}

std::unique_ptr<Tokenizer> load(const Json& entry, const std::string& name) {
  TokenizerOptions options{.extra_marks = {}};
  if (!entry.contains("content"))
    return parse_tokenizer(entry.at("tokenizer").dump(), name, options);
  options.scheme = entry.at("scheme").get<std::string>();
  return parse_tokenizer(entry.at("content").get<std::string>(), name, options);
}

/// The tokenizers library leaves the ends of CLIP's words in a text; the wrapper that everybody
/// uses puts blanks there, and so do we.
std::string without_word_ends(const std::string& text) {
  constexpr std::string_view kEnd = "</w>";
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, kEnd.size(), kEnd) != 0) {
      out += text[at];
      continue;
    }
    at += kEnd.size() - 1;
    if (at + 1 < text.size()) out += ' ';
  }
  return out;
}

void check_cases(const std::vector<std::string>& kinds) {
  int count = 0;
  for (const Json& entry : cases()) {
    const auto name = entry.at("name").get<std::string>();
    if (!is_of(name, kinds)) continue;
    ++count;
    const auto tokenizer = load(entry, name);
    for (const Json& row : entry.at("rows")) {
      const auto text = row[0].get<std::string>();
      CAPTURE(name);
      CAPTURE(row[0].dump(-1, ' ', true));
      const Ids ids = tokenizer->encode_whole(text);
      CHECK(ids == row[1].get<Ids>());
      CHECK(tokenizer->decode(row[1].get<Ids>()) == without_word_ends(row[2].get<std::string>()));
    }
  }
  CHECK(count > 0);
}

}  // namespace

TEST_CASE("tokenizer cases: byte-level BPE with prefix blank, other patterns, digits first") {
  check_cases({"byte level"});
}
TEST_CASE("tokenizer cases: CLIP's form: clean-up, suffix of word ends, begin and end tokens") {
  check_cases({"clip"});
}
TEST_CASE("tokenizer cases: added tokens that strip, stand alone, or follow normalisation") {
  check_cases({"added tokens"});
}
TEST_CASE("tokenizer cases: BPE over characters with signs for blanks, with and without fallback") {
  check_cases({"sign bpe"});
}
TEST_CASE("tokenizer cases: BERT's normaliser, cutter and word pieces") {
  check_cases({"bert", "word pieces"});
}
TEST_CASE("tokenizer cases: each behaviour of a split, and its inverse") { check_cases({"split"}); }
TEST_CASE("tokenizer cases: unigram with and without byte fallback") { check_cases({"unigram"}); }
TEST_CASE("tokenizer cases: word level joined with blanks") { check_cases({"word level"}); }
TEST_CASE("tokenizer cases: tiktoken files under the patterns of four families") {
  check_cases({"tiktoken"});
}
