#include "lib/run/prompt_text.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/text/render.h"

namespace mm::run {
namespace {

constexpr size_t kAtOnce = 16;  // prompts a pass: bounds the key-value cache

uint64_t key_of(const data::Sample& sample) {
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
  return xxh3_64(bytes(sample.pixels), xxh3_64(bytes(sample.text.tokens)));
}

/// Ids with the one picture's mark replaced by its placeholders.
data::Sample expanded(const TrainedModel& trained, const std::vector<int32_t>& ids,
                      int32_t image_tokens) {
  const int32_t image = static_cast<int32_t>(trained.config.image_token_index);
  const auto mark = std::ranges::find(ids, image);
  data::Sample sample;
  sample.text.image_begin.push_back(static_cast<uint32_t>(mark - ids.begin()));
  sample.text.tokens.assign(ids.begin(), mark);
  sample.text.tokens.insert(sample.text.tokens.end(), static_cast<size_t>(image_tokens), image);
  sample.text.tokens.insert(sample.text.tokens.end(), mark + 1, ids.end());
  return sample;
}

data::Sample question(const TrainedModel& trained, const std::string& text, int32_t image_tokens) {
  const auto chat = text::find_template(trained.data.chat_template);
  if (!chat)
    throw DataError("{}: unknown chat template {}", trained.run.string(),
                    trained.data.chat_template);
  const text::Conversation conversation{
      .turns = {{text::Role::kUser, std::string(text::kImageMark) + "\n" + text}}, .images = 1};
  const auto rendered = text::render(conversation, *chat, *trained.tokenizer,
                                     {.image_tokens = image_tokens, .prompt_only = true});
  if (!rendered) throw DataError("{}: {}", trained.run.string(), rendered.failure().message);
  data::Sample sample;
  sample.text.tokens = rendered->ids;
  for (const text::ImageSpan& span : rendered->images)
    sample.text.image_begin.push_back(static_cast<uint32_t>(span.begin));
  return sample;
}

}  // namespace

data::Sample text_prompt(const TrainedModel& trained, const std::string& text,
                         PreparedPicture picture) {
  const int32_t tokens = picture.grid ? picture.grid->tokens
                                      : static_cast<int32_t>(trained.config.patches_per_image());
  const auto image = static_cast<int32_t>(trained.config.image_token_index);
  const std::string mark = trained.tokenizer->id_to_piece(image);
  const bool marked = !mark.empty() && text.find(mark) != std::string::npos;
  if (!marked && text.find(text::kImageMark) != std::string::npos)
    throw UsageError(
        "--prompt: \"{}\" is no mark of this model; expected one \"{}\", or none for a "
        "question",
        text::kImageMark, mark);
  data::Sample sample;
  if (!marked) {
    sample = question(trained, text, tokens);
  } else {
    const std::vector<int32_t> ids = trained.tokenizer->encode_whole(text);
    const auto marks = std::ranges::count(ids, image);
    if (marks != 1)
      throw UsageError("--prompt: {} \"{}\" in the text; expected one, or none for a question",
                       marks, mark);
    sample = expanded(trained, ids, tokens);
  }
  sample.pixels = std::move(picture.pixels);
  if (picture.grid) sample.grids = {*picture.grid};
  return sample;
}

std::vector<Answer> answers(const TrainedModel& trained,
                            const std::vector<const data::Sample*>& prompts,
                            const model::GenerateOptions& options) {
  model::GenerateOptions used = options;
  used.stop_tokens = trained.stop_tokens;
  used.banned_tokens = {trained.config.image_token_index};
  std::vector<Answer> out;
  for (size_t begin = 0; begin < prompts.size(); begin += kAtOnce) {
    const std::vector<const data::Sample*> some(
        prompts.begin() + static_cast<int64_t>(begin),
        prompts.begin() + static_cast<int64_t>(std::min(prompts.size(), begin + kAtOnce)));
    used.sample_ids.clear();
    for (const data::Sample* sample : some) used.sample_ids.push_back(key_of(*sample));
    for (std::vector<int64_t>& ids :
         model::generate(*trained.model, *trained.params, prompt_batch(trained, some), used)) {
      const std::string text =
          trained.tokenizer->decode(std::vector<int32_t>(ids.begin(), ids.end()));
      out.push_back({std::move(ids), text});
    }
  }
  return out;
}

}  // namespace mm::run
