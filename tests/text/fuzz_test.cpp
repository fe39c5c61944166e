#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/random.h"
#include "tests/text/fixtures.h"

using namespace mm;
using namespace mm::text;

namespace {

// Damaged copies of a tokenizer file are refused with a DataError, or work.
void load_damaged_copies(const std::string& file, uint64_t seed, int copies) {
  const std::string whole = testing::fixture("oracles/tokenizers/" + file);
  const Philox random(seed, "tokenizer fuzz");
  int refused = 0;
  for (int i = 0; i < copies; ++i) {
    const Philox draw = random.child(static_cast<uint64_t>(i));
    std::string copy = whole;
    for (uint64_t k = 0; k < 1 + draw.below(0, 3); ++k)
      copy[draw.below(2 * k + 1, copy.size())] = static_cast<char>(draw.below(2 * k + 2, 256));
    try {
      const auto tokenizer = parse_tokenizer(copy, "damaged");
      const auto ids =
          tokenizer->encode("USER: caf\u00E9 \uFF21 <image>\n12 e\u0301 \U0001F600 it's</s>");
      CHECK_FALSE(tokenizer->decode(ids, true).empty());
    } catch (const DataError& e) {
      CHECK(std::string(e.what()).size() > 10);
      ++refused;
    }
  }
  CHECK(refused < copies);
}

}  // namespace

TEST_CASE("tokenizers: damaged GPT-2 files are refused or work") {
  load_damaged_copies("bpe_gpt2/tokenizer.json", 1, 150);
}
TEST_CASE("tokenizers: damaged Qwen2 files are refused or work") {
  load_damaged_copies("bpe_qwen2/tokenizer.json", 2, 150);
}
TEST_CASE("tokenizers: damaged SentencePiece BPE models are refused or work") {
  load_damaged_copies("sp_llama2/tokenizer.model", 3, 300);
}
TEST_CASE("tokenizers: damaged SentencePiece unigram models are refused or work") {
  load_damaged_copies("sp_t5/spiece.model", 4, 200);
}
