#include "lib/run/stop_tokens.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/run/eval_samples.h"
#include "tests/base/temp_dir.h"
#include "tests/run/toy_model.h"

using namespace mm;
using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;
using mm::test::message_of;
using Ids = std::vector<int64_t>;

namespace {

constexpr int32_t kEot = 20;

/// The toy tokenizer with Llama 3's marks: 18, 19 and kEot.
std::string llama3_like() {
  Json json = read_json_file(data::test::toy_tokenizer());
  int id = 18;
  for (const char* mark : {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}) {
    Json added = json["added_tokens"][0];
    added["id"] = id;
    added["content"] = mark;
    json["added_tokens"].push_back(added);
    json["model"]["vocab"][mark] = id++;
  }
  return json.dump();
}

}  // namespace

TEST_CASE("stop tokens: all ends of the configuration and of generation_config.json, once each") {
  TempDir dir;
  model::TextConfig config;
  config.eos_token = 2;
  config.more_eos_tokens = {7, 9};
  CHECK(stop_tokens_of(config, dir / "none.json") == Ids{2, 7, 9});
  const auto with = [&](const char* text) {
    write_file_atomic(dir / "generation_config.json", text);
    return stop_tokens_of(config, dir / "generation_config.json");
  };
  CHECK(with(R"({"eos_token_id": [9, 11]})") == Ids{2, 7, 9, 11});
  CHECK(with(R"({"eos_token_id": 12})") == Ids{2, 7, 9, 12});
  CHECK(with(R"({"eos_token_id": null})") == Ids{2, 7, 9});
  CHECK(with("{}") == Ids{2, 7, 9});
  config.eos_token = -1;
  CHECK(with("{}") == Ids{7, 9});
  for (const char* text :
       {"[1, 2]", "3", R"({"eos_token_id": "</s>"})", R"({"eos_token_id": [1.5]})"})
    CHECK(message_of<DataError>([&] {
            (void)with(text);
          }).find("generation_config.json: expected") != std::string::npos);
}

TEST_CASE("stop tokens: what closes an answer of the template, where that is one token") {
  const auto tokenizer = text::parse_tokenizer(llama3_like(), "llama3");
  const auto close = [&](const std::string& chat) {
    Ids stops;
    add_template_stop(chat, *tokenizer, stops);
    return stops;
  };
  CHECK(close("llama3") == Ids{kEot});
  CHECK(close("vicuna_v1") == Ids{2});
  CHECK(close("plain") == Ids{});  // a word tokenizer has no line ends
  CHECK(close("chatml") == Ids{});
  CHECK(close("name = \"own\"\nanswer_close = \"<|eot_id|>\\n\"") == Ids{kEot});
  CHECK(close("name = \"own\"\nanswer_close = \" red\"") == Ids{});
  CHECK(close("no such template") == Ids{});
  const auto gpt2 =
      text::load_tokenizer(MM_TEST_DATA "/oracles/tokenizers/bpe_gpt2/tokenizer.json");
  Ids stops{5};
  add_template_stop("plain", *gpt2, stops);
  REQUIRE(stops.size() == 2);
  CHECK(gpt2->decode(std::vector<int32_t>{static_cast<int32_t>(stops[1])}) == "\n");
}

TEST_CASE("a run in llama3's template ends its answers at <|eot_id|>") {
  TempDir dir;
  write_file_atomic(dir / "tokenizer.json", llama3_like());
  write_conversations(dir / "talk.jsonl", {{"palette.png", {"<image>\nwhat is this", "a cat"}},
                                           {"gray.jpg", {"<image>\nis this red", "no"}}});
  data::PackOptions options = data::test::toy_options(dir / "talk.jsonl");
  options.tokenizer = dir / "tokenizer.json";
  options.chat_template = "llama3";
  const auto set = packed(dir, "data", options);
  const TrainedModel trained = trained_on_data(dir);
  CHECK(trained.stop_tokens == Ids{2, kEot});
  const EvalSamples all = read_eval_samples(trained, set, 0);
  CHECK(all.truth_ids[0].back() == kEot);
}

TEST_CASE("a run that began from published weights keeps their ends of text") {
  TempDir dir;
  packed(dir, "data", 12);
  const TrainedModel trained = trained_on_data(dir);
  CHECK(trained.stop_tokens == Ids{2});
  std::filesystem::create_directories(dir / "run" / "hf");
  write_file_atomic(dir / "run" / "hf" / "generation_config.json", R"({"eos_token_id": [2, 17]})");
  CHECK(open_trained(dir / "run").stop_tokens == Ids{2, 17});
}
