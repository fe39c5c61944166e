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
  std::string answer_open;   ///< before the answer, not trained on
  std::string answer_lead;   ///< before the answer, trained on
  std::string answer_close;  ///< after the answer, trained on
  std::string turn_close;    ///< after that, not trained on
  /// A picture: `image_open`, `image` as often as it has tokens, `image_close`, none trained on.
  /// `image` is a mark of the tokenizer; empty: kImageMark.
  std::string image_open;
  std::string image;
  std::string image_close;
  bool keeps_user_text = true;  ///< false: of user turns only the picture marks stay (captioning)
  /// Marks go to the front of their turn, one line each, and the rest is stripped, as LLaVA does.
  bool marks_first = true;
  bool strips_text = false;  ///< texts of turns and of the system lose white space at both ends
};

/// A template by name, or by a definition in TOML (anything that holds a "="; see parse_template):
/// - "plain": LLaVA stage 1. `<s>` pictures caption `\n`; caption and line end are trained on.
/// - "plain_eos": the same with `</s>` in place of the line end. For tokenizers that fold line ends
///   into blanks, and for models that must learn to stop (the quick start).
/// - "vicuna_v1": `<s>` system, blank, `USER: ` question ` ASSISTANT:` blank answer `</s>`...;
///   blank + answer + `</s>` trained on.
/// - "mistral": `<s>[INST] ` question ` [/INST]`, blank, answer, `</s>`...; blank + answer + `</s>`
///   trained on; a system text stands before all between `<<SYS>>` and `<</SYS>>`, none of its own
///   (LLaVA-NeXT on Mistral).
/// - "llama3": `<|start_header_id|>role<|end_header_id|>`, two line ends, text, `<|eot_id|>`;
///   answer and its `<|eot_id|>` trained on; no system text of its own.
/// - "chatml": `<|im_start|>role`, line end, text, `<|im_end|>`, line end; answer and its
///   `<|im_end|>` trained on.
/// - "qwen2_vl": "chatml" with pictures where they stand, as `<|image_pad|>` between
///   `<|vision_start|>` and `<|vision_end|>` (Qwen2-VL, Qwen2.5-VL).
/// Nothing for other names. Throws UsageError for a wrong definition.
std::optional<ChatTemplate> find_template(std::string_view spec);

/// A template of a user: TOML with `name` and the fields of ChatTemplate as keys, all others with
/// their defaults. Throws UsageError with `origin`, line and column.
ChatTemplate parse_template(std::string_view toml, std::string_view origin);

std::vector<std::string> template_names();

}  // namespace mm::text
