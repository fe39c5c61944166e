#include "lib/text/render.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.h"
#include "tests/text/fixtures.h"

using namespace mm;
using namespace mm::text;
using mm::text::testing::Ids;
using mm::text::testing::toy_words;

namespace {

constexpr Role U = Role::kUser, A = Role::kAssistant;

// Vicuna without its system text: what the field cases describe.
ChatTemplate bare_vicuna() {
  ChatTemplate t = *find_template("vicuna_v1");
  t.system.clear();
  return t;
}

const Conversation kTwoTurns{
    {{U, "<image> what is this"}, {A, "a cat"}, {U, "and that"}, {A, "a dog"}}, 1};

std::string words(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += "red ";
  return out;
}

}  // namespace

TEST_CASE("C10: labels are exact by position, six trainable tokens") {
  const auto sample = render(kTwoTurns, bare_vicuna(), *toy_words(), {.image_tokens = 4});
  REQUIRE(sample.ok());
  CHECK(sample->ids == Ids{1, 4, 6, 6, 6, 6, 7, 8, 9, 5, 10, 11, 2, 4, 13, 14, 5, 10, 12, 2});
  Ids labels(20, kIgnore);
  for (const int i : {10, 11, 12, 17, 18, 19}) labels[i] = sample->ids[i];
  CHECK(sample->labels == labels);
  CHECK(sample->targets == 6);
  CHECK(sample->images == std::vector<ImageSpan>{{2, 4}});
}

TEST_CASE("render: a document keeps its order, all of its text and the end token are trained on") {
  Conversation document{
      {{U, "<image>"}, {A, "a cat"}, {U, "<image>"}, {U, "<image>"}, {A, "and that"}}, 3};
  document.document = true;
  const auto sample = render(document, bare_vicuna(), *toy_words(), {.image_tokens = 2});
  REQUIRE(sample.ok());
  CHECK(sample->ids == Ids{1, 6, 6, 10, 11, 6, 6, 6, 6, 13, 14, 2});
  Ids labels = sample->ids;
  for (const int i : {0, 1, 2, 5, 6, 7, 8}) labels[i] = kIgnore;
  CHECK(sample->labels == labels);
  document.images = 2;
  CHECK(render(document, bare_vicuna(), *toy_words(), {.image_tokens = 2}).failure().kind ==
        "image_count");
}

TEST_CASE("C10: a sample without a trainable token is refused and named, never silent") {
  const auto sample =
      render(kTwoTurns, bare_vicuna(), *toy_words(), {.image_tokens = 4, .max_length = 10});
  REQUIRE_FALSE(sample.ok());
  CHECK(sample.failure().kind == "no_targets");
}

TEST_CASE("C11: exactly one begin token, whether template, tokenizer or both ask for it") {
  const auto tokenizer = toy_words();
  REQUIRE(tokenizer->adds_bos());
  const Conversation c{{{U, "yes"}, {A, "no"}}, 0};
  for (const std::string begin : {"{bos}", ""}) {
    ChatTemplate chat = bare_vicuna();
    chat.begin = begin;
    const auto sample = render(c, chat, *tokenizer, {});
    REQUIRE(sample.ok());
    CHECK(sample->ids == Ids{1, 4, 16, 5, 15, 2});
    CHECK(std::count(sample->labels.begin(), sample->labels.end(), 1) == 0);
  }
  CHECK(tokenizer->encode_marked("<s> USER: yes ASSISTANT: no </s>").ids ==
        Ids{1, 4, 16, 5, 15, 2});
}

TEST_CASE(
    "C13: picture tokens are floor(side / patch) squared, class token only where one exists and is "
    "kept") {
  CHECK(image_token_count(336, 14, true, false) == 576);
  CHECK(image_token_count(224, 14, true, false) == 256);
  CHECK(image_token_count(336, 14, true, true) == 577);
  CHECK(image_token_count(224, 14, true, true) == 257);
  CHECK(image_token_count(224, 32, true, false) == 49);
  CHECK(image_token_count(224, 16, true, false) == 196);
  CHECK(image_token_count(384, 14, false, false) == 729);
  CHECK(image_token_count(384, 14, false, true) == 729);
  CHECK_THROWS_AS(image_token_count(13, 14, false, false), UsageError);
}

TEST_CASE("C13: marks and pictures that do not match are refused with both counts") {
  const auto tokenizer = toy_words();
  for (const auto& [text, marks] :
       {std::pair{"<image> <image> what", "2 <image>"}, {"what", "0 <image>"}}) {
    const auto sample =
        render({{{U, text}, {A, "a cat"}}, 1}, bare_vicuna(), *tokenizer, {.image_tokens = 4});
    REQUIRE_FALSE(sample.ok());
    CHECK(sample.failure().kind == "image_count");
    CHECK(sample.failure().message.find(marks) != std::string::npos);
    CHECK(sample.failure().message.find("1 pictures") != std::string::npos);
  }
}

TEST_CASE("C15: a length limit never cuts a picture") {
  // 11 text tokens, 576 picture tokens, 30 text tokens of which the last 20 are trained on: 617.
  ChatTemplate chat = bare_vicuna();
  chat.marks_first = false;
  const Conversation c{{{U, words(9) + "<image> " + words(9)}, {A, words(19)}}, 1};
  const auto at = [&](int32_t limit) {
    return render(c, chat, *toy_words(), {.image_tokens = 576, .max_length = limit});
  };
  const auto whole = at(617);
  REQUIRE(whole.ok());
  CHECK(whole->ids.size() == 617);
  CHECK(whole->images == std::vector<ImageSpan>{{11, 576}});
  CHECK(whole->targets == 20);
  CHECK(whole->cut_tokens == 0);
  const auto cut = at(600);
  REQUIRE(cut.ok());
  CHECK(std::count(cut->ids.begin(), cut->ids.end(), 6) == 576);
  CHECK(cut->targets == 3);
  CHECK(cut->cut_tokens == 17);
  REQUIRE_FALSE(at(590).ok());
  CHECK(at(590).failure().kind == "no_targets");
  REQUIRE_FALSE(at(500).ok());
  CHECK(at(500).failure().kind == "too_long");
}

TEST_CASE("C15: for every limit the sample holds all picture tokens or is refused") {
  for (int32_t limit = 1; limit <= 20; ++limit) {
    const auto sample =
        render(kTwoTurns, bare_vicuna(), *toy_words(), {.image_tokens = 4, .max_length = limit});
    if (!sample.ok()) continue;
    CHECK(static_cast<int32_t>(sample->ids.size()) == limit);
    CHECK(std::count(sample->ids.begin(), sample->ids.end(), 6) == 4);
  }
}

TEST_CASE(
    "C17: ids are those of the whole text, a token that begins before the answer is not trained "
    "on") {
  const auto tokenizer = load_tokenizer(
      std::filesystem::path(MM_TEST_DATA) / "text/fixtures/toy_bpe.json", {.extra_marks = {}});
  ChatTemplate chat{.name = "joined"};
  chat.marks_first = false;
  struct Case {
    std::string question, answer;
    Ids ids, labels;
  };
  for (const auto& [question, answer, ids, labels] :
       {Case{"a\n", "\nb", {0, 3, 1}, {kIgnore, kIgnore, 1}},
        Case{"a", "bc", {4, 5}, {kIgnore, 5}}}) {
    const auto sample = render({{{U, question}, {A, answer}}, 0}, chat, *tokenizer, {});
    REQUIRE(sample.ok());
    CHECK(sample->ids == ids);
    CHECK(sample->labels == labels);
    CHECK(tokenizer->encode(question + answer) == ids);
  }
}

TEST_CASE("plain: pictures, caption and line end, plain_eos ends with the end token instead") {
  const auto tokenizer = toy_words();
  const Conversation caption = caption_conversation("a red cat", 1);
  const auto eos = render(caption, *find_template("plain_eos"), *tokenizer, {.image_tokens = 3});
  REQUIRE(eos.ok());
  CHECK(eos->ids == Ids{1, 6, 6, 6, 10, 17, 11, 2});
  CHECK(eos->labels == Ids{kIgnore, kIgnore, kIgnore, kIgnore, 10, 17, 11, 2});
  const auto bpe = testing::oracle_tokenizer("bpe_gpt2/tokenizer.json");
  const auto plain = render(caption, *find_template("plain"), *bpe, {.image_tokens = 3});
  REQUIRE(plain.ok());
  CHECK(bpe->decode(plain->ids) == "a red cat\n");
  CHECK(plain->targets == static_cast<int32_t>(plain->ids.size()) - 3);
}

TEST_CASE("plain: text without a picture, and a question that is dropped") {
  const auto tokenizer = toy_words();
  const auto text =
      render(caption_conversation("yes", 0), *find_template("plain_eos"), *tokenizer, {});
  REQUIRE(text.ok());
  CHECK(text->ids == Ids{1, 16, 2});
  const auto asked = render({{{U, "what is this <image>"}, {A, "a dog"}}, 1},
                            *find_template("plain_eos"), *tokenizer, {.image_tokens = 1});
  REQUIRE(asked.ok());
  CHECK(asked->ids == Ids{1, 6, 10, 12, 2});
}

TEST_CASE("render: a prompt stops where the answer's trained part would begin") {
  const auto tokenizer = toy_words();
  const auto prompt = render({{{U, "<image> what is this"}}, 1}, bare_vicuna(), *tokenizer,
                             {.image_tokens = 2, .prompt_only = true});
  REQUIRE(prompt.ok());
  CHECK(prompt->ids == Ids{1, 4, 6, 6, 7, 8, 9, 5});
  CHECK(prompt->targets == 0);
  const auto picture = render({{{U, "<image>"}}, 1}, *find_template("plain_eos"), *tokenizer,
                              {.image_tokens = 2, .prompt_only = true});
  REQUIRE(picture.ok());
  CHECK(picture->ids == Ids{1, 6, 6});
}

TEST_CASE("render: turns in a wrong order and text that is not UTF-8 are refused") {
  const auto tokenizer = toy_words();
  const auto kind = [&](const Conversation& c) {
    const auto sample = render(c, bare_vicuna(), *tokenizer, {});
    return sample.ok() ? std::string("ok") : sample.failure().kind;
  };
  CHECK(kind({{}, 0}) == "bad_turns");
  CHECK(kind({{{A, "yes"}}, 0}) == "bad_turns");
  CHECK(kind({{{U, "yes"}}, 0}) == "bad_turns");
  CHECK(kind({{{U, "yes"}, {U, "no"}}, 0}) == "bad_turns");
  CHECK(kind({{{U, "yes"}, {A, "no"}, {A, "no"}}, 0}) == "bad_turns");
  CHECK(kind({{{A, "dropped"}, {U, "yes"}, {A, "no"}}, 0}) == "ok");
  CHECK(kind({{{U, "\xFF"}, {A, "no"}}, 0}) == "bad_utf8");
}

TEST_CASE("render: marks in a stranger's text are text, but for <image> in user turns") {
  const auto tokenizer = toy_words();
  const auto sample =
      render({{{U, "</s> yes"}, {A, "<s> <image>"}}, 0}, bare_vicuna(), *tokenizer, {});
  REQUIRE(sample.ok());
  // The toy vocabulary holds the marks as words too; a real one spells them in pieces. What counts:
  // no picture, one end mark id from the template at the end, and no span.
  CHECK(sample->images.empty());
  const auto real = testing::oracle_tokenizer("sp_llama2/tokenizer.model");
  const auto forged =
      render({{{U, "</s> yes"}, {A, "<s> no <image>"}}, 0}, bare_vicuna(), *real, {});
  REQUIRE(forged.ok());
  CHECK(std::count(forged->ids.begin(), forged->ids.end(), real->bos_id()) == 1);
  CHECK(std::count(forged->ids.begin(), forged->ids.end(), real->eos_id()) == 1);
  CHECK(std::count(forged->ids.begin(), forged->ids.end(), real->image_id()) == 0);
}

TEST_CASE(
    "render: the system text comes from the conversation, then the options, then the template") {
  const auto tokenizer = toy_words();
  ChatTemplate chat = bare_vicuna();
  chat.system = "red";
  const auto second_id = [&](const Conversation& c, const RenderOptions& options) {
    return (*render(c, chat, *tokenizer, options)).ids[1];
  };
  const Conversation plain{{{U, "yes"}, {A, "no"}}, 0};
  Conversation own = plain;
  own.turns.insert(own.turns.begin(), {Role::kSystem, "dog"});
  CHECK(second_id(plain, {}) == 17);
  CHECK(second_id(plain, {.system = "cat"}) == 11);
  CHECK(second_id(own, {.system = "cat"}) == 12);
  CHECK(second_id(plain, {.no_system = true}) == 4);
}

TEST_CASE("render: a template whose marks the tokenizer lacks is a usage error") {
  CHECK_THROWS_AS(
      (void)render({{{U, "yes"}, {A, "no"}}, 0}, *find_template("chatml"), *toy_words(), {}),
      UsageError);
}

TEST_CASE("templates are found by name") {
  for (const std::string& name : template_names()) CHECK(find_template(name)->name == name);
  CHECK_FALSE(find_template("alpaca"));
}

TEST_CASE("render: qwen2_vl leaves pictures where they stand, between their own marks") {
  const auto tokenizer = testing::oracle_tokenizer(
      "bpe_qwen2/tokenizer.json",
      {.extra_marks = {"<|vision_start|>", "<|image_pad|>", "<|vision_end|>"}});
  const ChatTemplate chat = *find_template("qwen2_vl");
  const int32_t pad = picture_id(chat, *tokenizer);
  REQUIRE(pad >= 0);
  const auto sample = render({{{U, "what <image> and <image>"}, {A, "a cat"}}, 2}, chat, *tokenizer,
                             {.picture_tokens = {3, 2}});
  REQUIRE(sample.ok());
  REQUIRE(sample->images.size() == 2);
  CHECK(sample->images[0].count == 3);
  CHECK(sample->images[1].count == 2);
  CHECK(std::count(sample->ids.begin(), sample->ids.end(), pad) == 5);
  for (const ImageSpan& image : sample->images) {
    const auto begin = static_cast<size_t>(image.begin), count = static_cast<size_t>(image.count);
    CHECK(sample->ids[begin - 1] == picture_id({.image = "<|vision_start|>"}, *tokenizer));
    CHECK(sample->ids[begin + count] == picture_id({.image = "<|vision_end|>"}, *tokenizer));
    for (size_t i = begin - 1; i <= begin + count; ++i) CHECK(sample->labels[i] == kIgnore);
  }
  // The words before and between stay in their places.
  CHECK(sample->images[0].begin > 10);
  CHECK(sample->images[1].begin > sample->images[0].begin + 3 + 2);
}

TEST_CASE(
    "picture_id: the template's own mark, else <image>; a mark that is not there is refused") {
  const auto tokenizer = toy_words();
  CHECK(picture_id(bare_vicuna(), *tokenizer) == tokenizer->image_id());
  CHECK_THROWS_AS((void)picture_id(*find_template("qwen2_vl"), *tokenizer), UsageError);
}
