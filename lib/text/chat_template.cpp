#include "lib/text/chat_template.h"

#include <array>

#include "lib/base/config.h"
#include "lib/base/error.h"

namespace mm::text {
namespace {

/// A row of the table below: what a ChatTemplate holds, as constants.
struct Row {
  std::string_view name;
  std::string_view begin, system_open, system, system_close;
  std::string_view user_open, user_close, answer_open, answer_lead, answer_close, turn_close;
  std::string_view image_open, image, image_close;
  bool keeps_user_text = true, marks_first = true, strips_text = false;
};

constexpr Row kChatMl{.name = "chatml",
                      .system_open = "<|im_start|>system\n",
                      .system = "You are a helpful assistant.",
                      .system_close = "<|im_end|>\n",
                      .user_open = "<|im_start|>user\n",
                      .user_close = "<|im_end|>\n",
                      .answer_open = "<|im_start|>assistant\n",
                      .answer_close = "<|im_end|>",
                      .turn_close = "\n"};

/// ChatML with pictures where they stand, between marks of their own.
constexpr Row qwen2_vl() {
  Row row = kChatMl;
  row.name = "qwen2_vl";
  row.image_open = "<|vision_start|>";
  row.image = "<|image_pad|>";
  row.image_close = "<|vision_end|>";
  row.marks_first = false;
  return row;
}

constexpr std::array kRows = {
    Row{.name = "plain", .begin = "{bos}", .answer_close = "\n", .keeps_user_text = false},
    Row{.name = "plain_eos", .begin = "{bos}", .answer_close = "{eos}", .keeps_user_text = false},
    Row{.name = "vicuna_v1",
        .begin = "{bos}",
        .system = "A chat between a curious user and an artificial intelligence assistant. The "
                  "assistant gives helpful, detailed, and polite answers to the user's questions.",
        .system_close = " ",
        .user_open = "USER: ",
        .user_close = " ",
        .answer_open = "ASSISTANT:",
        .answer_lead = " ",
        .answer_close = "{eos}"},
    Row{.name = "mistral",
        .begin = "{bos}",
        .system_open = "<<SYS>>\n",
        .system_close = "\n<</SYS>>\n\n",
        .user_open = "[INST] ",
        .user_close = " [/INST]",
        .answer_lead = " ",
        .answer_close = "{eos}"},
    Row{.name = "llama3",
        .begin = "{bos}",
        .system_open = "<|start_header_id|>system<|end_header_id|>\n\n",
        .system_close = "<|eot_id|>",
        .user_open = "<|start_header_id|>user<|end_header_id|>\n\n",
        .user_close = "<|eot_id|>",
        .answer_open = "<|start_header_id|>assistant<|end_header_id|>\n\n",
        .answer_close = "<|eot_id|>",
        .strips_text = true},
    kChatMl,
    qwen2_vl()};

ChatTemplate from_row(const Row& row) {
  const auto text = [](std::string_view s) { return std::string(s); };
  return {.name = text(row.name),
          .begin = text(row.begin),
          .system_open = text(row.system_open),
          .system = text(row.system),
          .system_close = text(row.system_close),
          .user_open = text(row.user_open),
          .user_close = text(row.user_close),
          .answer_open = text(row.answer_open),
          .answer_lead = text(row.answer_lead),
          .answer_close = text(row.answer_close),
          .turn_close = text(row.turn_close),
          .image_open = text(row.image_open),
          .image = text(row.image),
          .image_close = text(row.image_close),
          .keeps_user_text = row.keeps_user_text,
          .marks_first = row.marks_first,
          .strips_text = row.strips_text};
}

bool is_definition(std::string_view spec) { return spec.find('=') != std::string_view::npos; }

}  // namespace

ChatTemplate parse_template(std::string_view toml, std::string_view origin) {
  ConfigDocument document = ConfigDocument::parse(toml, std::string(origin));
  ConfigTable table = document.root();
  ChatTemplate t{.name = table.get_string("name")};
  const auto text = [&](const char* key) {
    return table.get_string(key, {.def = std::string(), .allow_empty = true});
  };
  t.begin = text("begin");
  t.system_open = text("system_open");
  t.system = text("system");
  t.system_close = text("system_close");
  t.user_open = text("user_open");
  t.user_close = text("user_close");
  t.answer_open = text("answer_open");
  t.answer_lead = text("answer_lead");
  t.answer_close = text("answer_close");
  t.turn_close = text("turn_close");
  t.image_open = text("image_open");
  t.image = text("image");
  t.image_close = text("image_close");
  t.keeps_user_text = table.get_bool("keeps_user_text", {.def = true});
  t.marks_first = table.get_bool("marks_first", {.def = true});
  t.strips_text = table.get_bool("strips_text", {.def = false});
  table.finish();
  return t;
}

std::optional<ChatTemplate> find_template(std::string_view spec) {
  if (is_definition(spec)) return parse_template(spec, "template");
  for (const Row& row : kRows) {
    if (row.name == spec) return from_row(row);
  }
  return std::nullopt;
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

}  // namespace mm::text
