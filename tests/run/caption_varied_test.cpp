// The directories, their pictures and answers come from transformers
// (tools/oracles/gen_caption_varied.py).
#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/run/prepare_picture.h"
#include "lib/run/published_model.h"
#include "tests/base/temp_dir.h"

using namespace mm::run;
using mm::Json;
using mm::test::message_of;
using mm::test::TempDir;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kFolders = {"llava_next_caption", "llava_onevision_caption",
                                           "qwen2_5_vl_caption"};

fs::path golden(const std::string& folder) { return fs::path(MM_TEST_DATA "/oracles") / folder; }

mm::data::Sample ask(const TrainedModel& model, const std::string& prompt,
                     const std::string& picture) {
  return text_prompt(model, prompt,
                     prepare_picture(model, mm::read_file(model.run / picture), picture));
}

using Files = std::vector<std::pair<std::string, Json>>;

/// A copy of the folder in which some files are others.
void copy_with(const TempDir& dir, const std::string& folder, const Files& files) {
  for (const auto& entry : fs::directory_iterator(golden(folder)))
    fs::copy(entry.path(), dir / entry.path().filename().string());
  for (const auto& [name, json] : files) mm::write_file_atomic(dir / name, json.dump());
}

std::string refusal(const std::string& folder, const Files& files) {
  const TempDir dir;
  copy_with(dir, folder, files);
  return message_of<mm::DataError>([&] { (void)open_published(dir.path()); });
}

std::string refusal(const std::string& folder, const std::string& file, const Json& json) {
  return refusal(folder, {{file, json}});
}

/// The question as the model of such a copy reads it.
std::string asked(const std::string& folder, const Files& files = {}) {
  const TempDir dir;
  copy_with(dir, folder, files);
  const TrainedModel model = open_published(dir.path());
  const auto sample = ask(model, "What is it?", "wide.png");
  CHECK(sample.text.image_begin.size() == 1);
  return model.tokenizer->decode(sample.text.tokens, /*keep_marks=*/true);
}

Json config_of(const std::string& folder) {
  return mm::read_json_file(golden(folder) / "config.json");
}

Json settings_of(const std::string& folder) {
  return mm::read_json_file(golden(folder) / "preprocessor_config.json");
}

}  // namespace

TEST_CASE(
    "imported LLaVA-NeXT, OneVision and Qwen2.5-VL give transformers' prompt ids and greedy "
    "tokens, in one batch") {
  for (const std::string& folder : kFolders) {
    CAPTURE(folder);
    const TrainedModel model = open_published(golden(folder));
    const Json expected = mm::read_json_file(golden(folder) / "answers.json");
    std::vector<mm::data::Sample> samples;
    for (const Json& answer : expected)
      samples.push_back(ask(model, answer["prompt"], answer["picture"]));
    std::vector<const mm::data::Sample*> prompts;
    for (const auto& sample : samples) prompts.push_back(&sample);
    const auto greedy = answers(model, prompts, {.max_new_tokens = 10});
    REQUIRE(greedy.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(Json(samples[i].text.tokens) == expected[i]["prompt_ids"]);
      CHECK(Json(greedy[i].tokens) == expected[i]["greedy"]);
    }
  }
}

TEST_CASE("a question is asked in the template whose marks the tokenizer has") {
  CHECK(asked("llava_next_caption").find("What is it? ASSISTANT:") != std::string::npos);
  CHECK(asked("llava_onevision_caption").find("What is it?<|im_end|>\n<|im_start|>assistant\n") !=
        std::string::npos);
  CHECK(asked("qwen2_5_vl_caption").find("<|image_pad|><|vision_end|>") != std::string::npos);
}

TEST_CASE(
    "a Mistral decoder whose tokenizer has no marks of turns is asked in Mistral's template") {
  Json config = config_of("llava_next_caption");
  config["text_config"]["model_type"] = "mistral";
  const std::string text = asked("llava_next_caption", {{"config.json", config}});
  CHECK(text.starts_with("<s>[INST] <image>"));
  CHECK(text.ends_with("<image>\nWhat is it? [/INST]"));
}

TEST_CASE("any family is asked by Qwen's mark where that stands for its pictures") {
  for (const char* folder : {"llava_next_caption", "llava_onevision_caption"}) {
    CAPTURE(folder);
    Json tokenizer = mm::read_json_file(golden(folder) / "tokenizer.json");
    Json& marks = tokenizer["added_tokens"];
    for (Json& mark : marks)
      if (mark["content"] == "<image>") mark["content"] = "<|image_pad|>";
    for (const char* name : {"<|vision_start|>", "<|vision_end|>", "<|im_start|>", "<|im_end|>"}) {
      Json mark = marks.back();
      mark["id"] = mark["id"].get<int>() + 1;
      mark["content"] = name;
      const auto same = [&](const Json& other) { return other["content"] == name; };
      if (std::ranges::none_of(marks, same)) marks.push_back(mark);
    }
    const std::string text = asked(folder, {{"tokenizer.json", tokenizer}});
    CHECK(text.find("<|im_start|>user\n<|vision_start|><|image_pad|>") != std::string::npos);
    CHECK(text.find("<|image_pad|><|vision_end|>\nWhat is it?<|im_end|>") != std::string::npos);
  }
}

TEST_CASE("marks of another model, and too many of them, are one line") {
  const TrainedModel model = open_published(golden("qwen2_5_vl_caption"));
  const auto said = [&](const std::string& prompt) {
    return message_of<mm::UsageError>([&] { (void)ask(model, prompt, "wide.png"); });
  };
  CHECK(said("a <image> b") ==
        "--prompt: \"<image>\" is no mark of this model; expected one \"<|image_pad|>\", or none "
        "for a question");
  CHECK(said("<|image_pad|><|image_pad|>").find("2 \"<|image_pad|>\"") != std::string::npos);
}

TEST_CASE("a preparation that is not the model's is refused in one line") {
  Json next = settings_of("llava_next_caption");
  next["image_grid_pinpoints"] = {{28, 56}};
  CHECK(refusal("llava_next_caption", "preprocessor_config.json", next)
            .find("image_grid_pinpoints of the pictures' preparation and of config.json differ") !=
        std::string::npos);
  Json qwen = settings_of("qwen2_5_vl_caption");
  qwen["patch_size"] = 14;
  CHECK(refusal("qwen2_5_vl_caption", "preprocessor_config.json", qwen)
            .find("14 pixels a patch, config.json has 7") != std::string::npos);
  CHECK(refusal("qwen2_5_vl_caption", "preprocessor_config.json", settings_of("llava_next_caption"))
            .find("\"anyres\", which a qwen2_5_vl model does not read") != std::string::npos);
  Json config = config_of("qwen2_5_vl_caption");
  config["image_token_id"] = 5;
  CHECK(refusal("qwen2_5_vl_caption", "config.json", config)
            .find("config.json has image_token_id 5") != std::string::npos);
}

TEST_CASE("a preparation that could not be carried out is refused before the weights are read") {
  Json config = config_of("llava_next_caption"), pictures = settings_of("llava_next_caption");
  config["image_grid_pinpoints"] = pictures["image_grid_pinpoints"] = {{28, 16 * 28}, {56, 28}};
  const Files wide{{"config.json", config}, {"preprocessor_config.json", pictures}};
  CHECK(refusal("llava_next_caption", wide)
            .find("config.json: image_grid_pinpoints, in tiles: grids: \"1x16\" is no pair") !=
        std::string::npos);
  Json qwen = settings_of("qwen2_5_vl_caption");
  qwen["size"] = {{"shortest_edge", 1}, {"longest_edge", 14 * 14 - 1}};
  CHECK(refusal("qwen2_5_vl_caption", "preprocessor_config.json", qwen)
            .find("the preparation of pictures: max prepared pixels") != std::string::npos);
}
