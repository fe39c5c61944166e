// Published tokenizer files, which are not kept here: scripts/long-tests.sh fetches them and names
// their folder in MM_REAL_TOKENIZERS. Without it these cases do nothing.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/text/fixtures.h"

using namespace mm::text;
using mm::text::testing::Ids;

namespace {

std::unique_ptr<Tokenizer> real(const char* name) {
  const char* folder = std::getenv("MM_REAL_TOKENIZERS");
  if (folder == nullptr || !std::filesystem::exists(std::filesystem::path(folder) / name)) {
    MESSAGE("not there: ", std::string(name));
    return nullptr;
  }
  return load_tokenizer(std::filesystem::path(folder) / name, {.extra_marks = {}});
}

}  // namespace

TEST_CASE("real files: Mistral's SentencePiece model") {
  const auto t = real("mistral.model");
  if (t == nullptr) return;
  CHECK(t->vocab_size() == 32000);
  CHECK((t->unk_id() == 0 && t->bos_id() == 1 && t->eos_id() == 2 && t->pad_id() == -1));
  std::string pieces;
  for (const int32_t id : t->encode("na\u00EFve \u4F60\u597D \U0001F999"))
    pieces += t->id_to_piece(id) + "|";
  CHECK(pieces.starts_with("\u2581na|\u00EF|ve|"));
  CHECK(pieces.ends_with("\u4F60|\u597D|\u2581|<0xF0>|<0x9F>|<0xA6>|<0x99>|"));
}

TEST_CASE("real files: GPT-2's ranks") {
  const auto t = real("gpt2.tiktoken");
  if (t == nullptr) return;
  CHECK(t->vocab_size() == 50257);
  CHECK(t->encode("Hello world") == Ids{15496, 995});
  CHECK(t->encode("Hello, my dog is cute") == Ids{15496, 11, 616, 3290, 318, 13779});
}

TEST_CASE("real files: CLIP's merges") {
  const auto t = real("clip.txt.gz");
  if (t == nullptr) return;
  CHECK(t->vocab_size() == 49408);
  const Ids ids = t->encode_whole("a photo of a llama, it's");
  CHECK(ids == Ids{49406, 320, 1125, 539, 320, 36679, 267, 585, 568, 49407});
}

TEST_CASE("real files: T5's tokenizer.json") {
  const auto t = real("t5.json");
  if (t == nullptr) return;
  CHECK(t->vocab_size() == 32100);
  CHECK(t->encode_whole("A photo of a llama, studio lighting.") ==
        Ids{71, 1202, 13, 3, 9, 3, 195, 265, 9, 6, 3100, 3598, 5, 1});
  CHECK(t->encode_whole("translate English to German: That is good.") ==
        Ids{13959, 1566, 12, 2968, 10, 466, 19, 207, 5, 1});
}

TEST_CASE("real files: MiniLM's tokenizer.json") {
  const auto t = real("minilm.json");
  if (t == nullptr) return;
  CHECK(t->vocab_size() == 30522);
  CHECK(t->encode_whole("Hello, world! This is a test.") ==
        Ids{101, 7592, 1010, 2088, 999, 2023, 2003, 1037, 3231, 1012, 102});
}

TEST_CASE("real files: Llama 3's and Qwen's ranks") {
  if (const auto t = real("llama3.tiktoken")) {
    CHECK(t->vocab_size() == 128256);
    CHECK(t->encode_whole("Hello world") == Ids{128000, 9906, 1917});
  }
  if (const auto t = real("qwen.tiktoken")) {
    CHECK(t->piece_to_id("<|im_end|>") == 151645);
    CHECK(t->encode("Hello world") == Ids{9707, 1879});
  }
}
