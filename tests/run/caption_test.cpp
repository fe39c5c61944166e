// The directory, its pictures and answers come from transformers (tools/oracles/gen_caption.py).
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/image/prepare.h"
#include "lib/run/prompt_text.h"
#include "lib/run/published_model.h"
#include "tests/base/temp_dir.h"

using namespace mm::run;
using mm::Json;
using mm::test::message_of;
using mm::test::TempDir;
namespace fs = std::filesystem;

namespace {

const fs::path kGolden = MM_TEST_DATA "/oracles/llava_caption";

std::vector<uint8_t> pixels_of(const TrainedModel& model, const std::string& picture) {
  const std::string bytes = mm::read_file(kGolden / picture);
  const auto decoded = mm::image::decode_prepared(
      std::as_bytes(std::span(bytes.data(), bytes.size())),
      {.geometry = *mm::image::geometry_from_name(model.data.pictures.geometry),
       .side = static_cast<int32_t>(model.config.vision.image_size)});
  REQUIRE(decoded);
  return {decoded->image.rgb.begin(), decoded->image.rgb.end()};
}

struct Asked {
  std::vector<mm::data::Sample> samples;
  std::vector<const mm::data::Sample*> prompts() const {
    std::vector<const mm::data::Sample*> list;
    for (const auto& sample : samples) list.push_back(&sample);
    return list;
  }
};

Asked ask_all(const TrainedModel& model, const Json& answers) {
  Asked asked;
  for (const Json& answer : answers)
    asked.samples.push_back(
        text_prompt(model, answer["prompt"], {pixels_of(model, answer["picture"]), {}}));
  return asked;
}

/// A copy of the golden directory with one file changed.
void copy_with(const TempDir& dir, const std::string& file, const std::string& text) {
  for (const auto& entry : fs::directory_iterator(kGolden))
    fs::copy(entry.path(), dir / entry.path().filename().string());
  mm::write_file_atomic(dir / file, text);
}

}  // namespace

TEST_CASE(
    "an imported directory gives transformers' prompt ids, greedy tokens and beams, in one batch") {
  const TrainedModel model = open_published(kGolden);
  const Json golden = mm::read_json_file(kGolden / "answers.json");
  const Asked asked = ask_all(model, golden);
  const auto greedy = answers(model, asked.prompts(), {.max_new_tokens = 12});
  const auto beams = answers(model, asked.prompts(), {.max_new_tokens = 12, .beams = 3});
  for (size_t i = 0; i < golden.size(); ++i) {
    CAPTURE(i);
    CHECK(Json(asked.samples[i].text.tokens) == golden[i]["prompt_ids"]);
    CHECK(Json(greedy[i].tokens) == golden[i]["greedy"]);
    CHECK(greedy[i].text == golden[i]["text"]);
    CHECK(Json(beams[i].tokens) == golden[i]["beams3"]);
  }
}

TEST_CASE("a drawn answer is the same alone and among others, and another with another seed") {
  const TrainedModel model = open_published(kGolden);
  const Asked asked = ask_all(model, mm::read_json_file(kGolden / "answers.json"));
  const mm::model::GenerateOptions options{.max_new_tokens = 12,
                                           .sampling = {.temperature = 1, .top_p = 0.9}};
  const auto all = answers(model, asked.prompts(), options);
  std::vector<std::vector<int64_t>> tokens, other;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto alone = answers(model, {&asked.samples[i]}, options);
    CHECK(alone[0].tokens == all[i].tokens);
    tokens.push_back(all[i].tokens);
  }
  mm::model::GenerateOptions again = options;
  again.seed = 9;
  for (const Answer& answer : answers(model, asked.prompts(), again))
    other.push_back(answer.tokens);
  CHECK(other != tokens);
}

TEST_CASE("a question goes into the template; several marks are refused") {
  const TrainedModel model = open_published(kGolden);
  const auto pixels = pixels_of(model, "wide.png");
  const auto sample = text_prompt(model, "What is it?", {pixels, {}});
  CHECK(sample.text.image_begin.size() == 1);
  CHECK(model.tokenizer->decode(sample.text.tokens).find("USER: \nWhat is it? ASSISTANT:") !=
        std::string::npos);
  CHECK_THROWS_AS((void)text_prompt(model, "<image><image>", {pixels, {}}), mm::UsageError);
}

TEST_CASE("a directory whose files do not fit together is one line") {
  const auto refusal = [](const std::string& file, const std::string& text) {
    const TempDir dir;
    copy_with(dir, file, text);
    return message_of<mm::DataError>([&] { (void)open_published(dir.path()); });
  };
  CHECK(refusal("preprocessor_config.json", R"({"size": 32, "crop_size": 32})")
            .find("32 pixels a side, config.json has 28") != std::string::npos);
  Json config = mm::read_json_file(kGolden / "config.json");
  config["image_token_index"] = 7;
  CHECK(refusal("config.json", config.dump()).find("config.json has image_token_index 7") !=
        std::string::npos);
  config = mm::read_json_file(kGolden / "config.json");
  config["text_config"]["vocab_size"] = 4;
  CHECK(refusal("config.json", config.dump()) != "no error");
}
