#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "lib/text/render.h"
#include "tests/text/fixtures.h"

using namespace mm;
using namespace mm::text;
using mm::text::testing::Ids;
using mm::text::testing::oracle_tokenizer;

namespace {

const Json& expectations() {
  static const Json e = parse_json(
      mm::text::testing::fixture("oracles/conversations/expected.json"), "expected.json");
  return e;
}

Conversation conversation_of(const Json& row) {
  Conversation out;
  for (const Json& turn : row.at("turns"))
    out.turns.push_back({*role_from_name(turn[0].get<std::string>()), turn[1].get<std::string>()});
  out.images = row.at("images").get<int>();
  return out;
}

void check(const Tokenizer& tokenizer, const std::string& template_name, const std::string& key) {
  const ChatTemplate chat = *find_template(template_name);
  for (const Json& row : expectations().at("rows")) {
    const auto name = row.at("name").get<std::string>();
    CAPTURE(name);
    RenderOptions options{.image_tokens = expectations().at("image_tokens").get<int>()};
    if (row.at("max_length").is_number()) options.max_length = row.at("max_length").get<int>();
    const auto sample = render(conversation_of(row), chat, tokenizer, options);
    REQUIRE(sample.ok());
    CHECK(sample->ids == row.at(key).at("ids").get<Ids>());
    CHECK(sample->labels == row.at(key).at("labels").get<Ids>());
    CHECK(sample->images.size() == row.at("images").get<size_t>());
    for (const ImageSpan& span : sample->images) {
      CHECK(span.count == options.image_tokens);
      for (int32_t i = 0; i < span.count; ++i)
        CHECK(sample->ids[span.begin + i] == tokenizer.image_id());
    }
    if (options.max_length > 0) continue;
    Ids trained;
    for (const int32_t label : sample->labels) {
      if (label != kIgnore) trained.push_back(label);
    }
    CHECK(tokenizer.decode(trained, template_name == "chatml") ==
          row.at(key).at("supervised_text").get<std::string>());
  }
}

}  // namespace

TEST_CASE("oracle conversations: Vicuna v1, dummy blank before every text") {
  check(*oracle_tokenizer("sp_llama2/tokenizer.model"), "vicuna_v1", "vicuna_prefix_everywhere");
}

TEST_CASE("oracle conversations: Vicuna v1, dummy blank before the first text only") {
  check(*oracle_tokenizer("sp_llama2/tokenizer.model", {.dummy_prefix = DummyPrefix::kFirstOnly}),
        "vicuna_v1", "vicuna_prefix_first_only");
}

TEST_CASE("oracle conversations: ChatML with a byte-level BPE") {
  check(*oracle_tokenizer("bpe_qwen2/tokenizer.json"), "chatml", "chatml");
}
