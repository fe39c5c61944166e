#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/model/generate.h"
#include "lib/run/trained_model.h"

namespace mm::run {

/// [side, side, 3] u8, or the tiles that `grid` says.
struct PreparedPicture {
  std::vector<uint8_t> pixels;
  std::optional<data::PictureGrid> grid;
};

/// A prompt about one picture. Text with the model's mark of a picture ("<image>", Qwen2.5-VL's
/// "<|image_pad|>") is taken as it is, marks of the tokenizer read and its own begin token in
/// front; other text is a question in the model's chat template. Throws UsageError for text with
/// several marks, or with "<image>" where that is not the model's.
data::Sample text_prompt(const TrainedModel& trained, const std::string& text,
                         PreparedPicture picture);

struct Answer {
  std::vector<int64_t> tokens;
  std::string text;
};
/// What the model says to each prompt, a bounded number at a time. `options`: stop and banned
/// tokens are set here; random draws are keyed by the prompt's tokens and pixels, so that an answer
/// does not depend on the other prompts.
std::vector<Answer> answers(const TrainedModel& trained,
                            const std::vector<const data::Sample*>& prompts,
                            const model::GenerateOptions& options);

}  // namespace mm::run
