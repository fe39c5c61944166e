#include "lib/run/user_turn.h"

#include <doctest/doctest.h>

#include "lib/text/render.h"

using namespace mm;
using namespace mm::run;

namespace {

const std::string kQuestion = "What is the brand?\nAnswer the question using a single word.";

std::unique_ptr<text::Tokenizer> tokenizer(const std::string& file,
                                           const std::vector<std::string>& marks) {
  return text::load_tokenizer(std::filesystem::path(MM_TEST_DATA) / "oracles/tokenizers" / file,
                              {.extra_marks = marks});
}

/// The user's words of each round, as the sample would be stored.
std::vector<std::string> turns(const std::string& chat_template, const text::Tokenizer& tokenizer,
                               const std::vector<text::Turn>& rounds) {
  const text::ChatTemplate chat = *text::find_template(chat_template);
  const auto sample = text::render({rounds, 1}, chat, tokenizer, {.image_tokens = 3});
  REQUIRE(sample.ok());
  const int32_t image = text::picture_id(chat, tokenizer);
  std::vector<std::string> all;
  std::vector<int32_t> asked;
  for (size_t i = 0; i < sample->ids.size(); ++i) {
    const bool answer = sample->labels[i] != text::kIgnore;
    if (answer && !asked.empty()) all.push_back(user_turn(asked, chat, tokenizer));
    if (answer) asked.clear();
    if (!answer && sample->ids[i] != image) asked.push_back(sample->ids[i]);
  }
  return all;
}

std::vector<text::Turn> two_rounds() {
  return {{text::Role::kUser, "<image>\n" + kQuestion},
          {text::Role::kAssistant, "Acme"},
          {text::Role::kUser, "Is it USER: or ASSISTANT: friendly?"},
          {text::Role::kAssistant, "no"}};
}

}  // namespace

TEST_CASE("user turn: the bare question, in LLaVA's two lines, of every template") {
  const std::vector<std::string> marks = {
      "<image>",          "<|im_start|>",        "<|im_end|>",
      "<|eot_id|>",       "<|start_header_id|>", "<|image_pad|>",
      "<|vision_start|>", "<|vision_end|>",      "<|end_header_id|>"};
  const auto bytes = tokenizer("bpe_qwen2/tokenizer.json", marks);
  for (const char* chat : {"chatml", "qwen2_vl", "llama3"}) {
    CAPTURE(chat);
    const auto all = turns(chat, *bytes, two_rounds());
    REQUIRE(all.size() == 2);
    CHECK(all[0] == kQuestion);
    CHECK(all[1] == "Is it USER: or ASSISTANT: friendly?");
  }
  const auto pieces = tokenizer("sp_llama2/tokenizer.model", {"<image>"});
  for (const char* chat : {"vicuna_v1", "mistral"}) {
    CAPTURE(chat);
    const auto all = turns(chat, *pieces, two_rounds());
    REQUIRE(all.size() == 2);
    CHECK(all[0] == kQuestion);
    CHECK(all[1] == "Is it USER: or ASSISTANT: friendly?");
  }
}

TEST_CASE("user turn: captions ask nothing; a system text of the sample's own is no question") {
  const auto pieces = tokenizer("sp_llama2/tokenizer.model", {"<image>"});
  CHECK(turns("plain", *pieces,
              {{text::Role::kUser, "<image>\nx"}, {text::Role::kAssistant, "a cat"}}) ==
        std::vector<std::string>{""});
  CHECK(turns("vicuna_v1", *pieces,
              {{text::Role::kSystem, "Be brief."},
               {text::Role::kUser, "<image>\nWhat is it?"},
               {text::Role::kAssistant, "a cat"}}) == std::vector<std::string>{"What is it?"});
}
