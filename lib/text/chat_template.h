#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mm::text {

/// A chat template as data. A sample is `begin`, then the system text, then per pair of turns user
/// and answer. Strings may hold marks of the tokenizer ("<|im_end|>") and the words {bos} and
/// {eos}, which become the tokenizer's ids (or nothing where it has none); text of turns is never
/// parsed for them, but for kImageMark.
struct ChatTemplate {
  std::string name;
  std::string begin;        ///< once at the start
  std::string system_open;  ///< only if there is a system text
  std::string system;       ///< used when the conversation brings none
  std::string system_close;
  std::string user_open;
  std::string user_close;
  std::string answer_open;      ///< before the answer, not trained on
  std::string answer_lead;      ///< before the answer, trained on
  std::string answer_close;     ///< after the answer, trained on
  std::string turn_close;       ///< after that, not trained on
  bool keeps_user_text = true;  ///< false: of user turns only the picture marks stay (captioning)
  /// Marks go to the front of their turn, one line each, and the rest is stripped, as LLaVA does.
  bool marks_first = true;
};

/// Named templates:
/// - "plain": LLaVA stage 1. `<s>` pictures caption `\n`; caption and line end are trained on.
/// - "plain_eos": the same with `</s>` in place of the line end: `<s>` pictures caption `</s>`. For
/// tokenizers that fold line
///   ends into blanks, and for models that must learn to stop (the quick start).
/// - "vicuna_v1": `<s>` system, blank, `USER: ` question ` ASSISTANT:` blank answer `</s>`...;
/// blank + answer + `</s>` trained on.
/// - "chatml": `<|im_start|>role⏎text<|im_end|>⏎`; answer and its `<|im_end|>` trained on.
/// Nothing for other names.
std::optional<ChatTemplate> find_template(std::string_view name);
std::vector<std::string> template_names();

}  // namespace mm::text
