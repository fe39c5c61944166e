#include "lib/text/chat_template.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/text/render.h"
#include "tests/text/fixtures.h"

using namespace mm;
using namespace mm::text;
using mm::text::testing::Ids;

namespace {

// A tiktoken-free stand-in with Llama 3's marks: the GPT-2 oracle file and more marks.
std::unique_ptr<Tokenizer> llama3_like() {
  return testing::oracle_tokenizer(
      "bpe_llama3/tokenizer.json",
      {.extra_marks = {"<image>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}});
}

std::string trained_text(const Tokenizer& tokenizer, const RenderedSample& sample) {
  Ids ids;
  for (const int32_t label : sample.labels) {
    if (label != kIgnore) ids.push_back(label);
  }
  return tokenizer.decode(ids, true);
}

}  // namespace

TEST_CASE(
    "llama3: headers, stripped texts, an end mark a turn, answers and their marks trained on") {
  const auto tokenizer = llama3_like();
  const Conversation conversation{{{Role::kSystem, " Be brief. "},
                                   {Role::kUser, "<image>\nWhat is it? "},
                                   {Role::kAssistant, " A cat.\n"}},
                                  1};
  const auto sample =
      render(conversation, *find_template("llama3"), *tokenizer, {.image_tokens = 2});
  REQUIRE(sample.ok());
  CHECK(tokenizer->decode(sample->ids, true) ==
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\n<image><image>\nWhat is it?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nA cat.<|eot_id|>");
  CHECK(trained_text(*tokenizer, *sample) == "A cat.<|eot_id|>");
}

TEST_CASE("mistral: questions between INST marks, answers and their end tokens trained on") {
  const auto tokenizer = testing::oracle_tokenizer("sp_llama2/tokenizer.model");
  const auto shown = [&](const RenderedSample& sample) {
    return tokenizer->decode(sample.ids, true);
  };
  const ChatTemplate chat = *find_template("mistral");
  const Turn first{Role::kUser, "What is it? <image>"}, answer{Role::kAssistant, "A cat."};
  const auto sample =
      render({{first, answer, {Role::kUser, "Why?"}, {Role::kAssistant, "It purrs."}}, 1}, chat,
             *tokenizer, {.image_tokens = 2});
  REQUIRE(sample.ok());
  CHECK(
      shown(*sample) ==
      "<s>[INST] <image><image>\nWhat is it? [/INST] A cat.</s>[INST] Why? [/INST] It purrs.</s>");
  CHECK(trained_text(*tokenizer, *sample) == "A cat.</s>It purrs.</s>");
  const auto asked = render({{{Role::kSystem, "Be brief."}, first}, 1}, chat, *tokenizer,
                            {.image_tokens = 1, .prompt_only = true});
  REQUIRE(asked.ok());
  CHECK(shown(*asked) == "<s><<SYS>>\nBe brief.\n<</SYS>>\n\n[INST] <image>\nWhat is it? [/INST]");
}

TEST_CASE("C10 C11: every template gives one begin token, labels equal to ids, answers only") {
  const auto tokenizer = testing::oracle_tokenizer(
      "bpe_llama3/tokenizer.json",
      {.extra_marks = {"<image>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
                       "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>",
                       "<|vision_end|>"}});
  const Conversation conversation{{{Role::kUser, "<image> one"},
                                   {Role::kAssistant, "two"},
                                   {Role::kUser, "three"},
                                   {Role::kAssistant, "four"}},
                                  1};
  for (const std::string& name : template_names()) {
    CAPTURE(name);
    const auto sample = render(conversation, *find_template(name), *tokenizer, {.image_tokens = 3});
    REQUIRE(sample.ok());
    CHECK(std::count(sample->ids.begin(), sample->ids.end(), tokenizer->bos_id()) == 1);
    CHECK(sample->ids[0] == tokenizer->bos_id());
    for (size_t i = 0; i < sample->ids.size(); ++i)
      CHECK((sample->labels[i] == kIgnore || sample->labels[i] == sample->ids[i]));
    const std::string text = trained_text(*tokenizer, *sample);
    CHECK(text.find("two") != std::string::npos);
    CHECK(text.find("four") != std::string::npos);
    CHECK(text.find("one") == std::string::npos);
    CHECK(text.find("three") == std::string::npos);
    CHECK(text.find("<image>") == std::string::npos);
  }
}

TEST_CASE("a user's template: TOML with the fields as keys, usable by its text") {
  const std::string toml =
      "name = \"mine\"\nbegin = \"{bos}\"\nuser_open = \"USER: \"\nanswer_open = \" ASSISTANT:\"\n"
      "answer_lead = \" \"\nanswer_close = \"{eos}\"\nmarks_first = false\n";
  const auto chat = find_template(toml);
  REQUIRE(chat);
  CHECK(chat->name == "mine");
  CHECK_FALSE(chat->marks_first);
  CHECK(chat->keeps_user_text);
  const auto sample = render({{{Role::kUser, "what is this"}, {Role::kAssistant, "a cat"}}, 0},
                             *chat, *testing::toy_words(), {});
  REQUIRE(sample.ok());
  CHECK(sample->ids == Ids{1, 4, 7, 8, 9, 5, 10, 11, 2});
}

TEST_CASE("a user's template: wrong ones are refused with place and name") {
  const auto message = [](const char* toml) -> std::string {
    try {
      parse_template(toml, "mine.toml");
    } catch (const UsageError& e) {
      return e.what();
    }
    return "accepted";
  };
  CHECK(message("name = \"x\"\nuser_opne = \"a\"\n").find("user_open") != std::string::npos);
  CHECK(message("name = \"x\"\nbegin = 3\n").find("mine.toml:2") != std::string::npos);
  CHECK(message("begin = \"\"\n").find("name") != std::string::npos);
  CHECK(message("name = \"x\"\nbegin\n").find("mine.toml:2") != std::string::npos);
}
