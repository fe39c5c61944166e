#include "lib/text/chat_template.h"

#include <array>

namespace mm::text {
namespace {

ChatTemplate plain() {
  ChatTemplate t{.name = "plain", .begin = "{bos}", .answer_close = "\n"};
  t.keeps_user_text = false;
  return t;
}

ChatTemplate plain_eos() {
  ChatTemplate t = plain();
  t.name = "plain_eos";
  t.answer_close = "{eos}";
  return t;
}

ChatTemplate vicuna_v1() {
  return {.name = "vicuna_v1",
          .begin = "{bos}",
          .system =
              "A chat between a curious user and an artificial intelligence assistant. "
              "The assistant gives helpful, detailed, and polite answers to the user's questions.",
          .system_close = " ",
          .user_open = "USER: ",
          .user_close = " ",
          .answer_open = "ASSISTANT:",
          .answer_lead = " ",
          .answer_close = "{eos}"};
}

ChatTemplate chatml() {
  return {.name = "chatml",
          .system_open = "<|im_start|>system\n",
          .system = "You are a helpful assistant.",
          .system_close = "<|im_end|>\n",
          .user_open = "<|im_start|>user\n",
          .user_close = "<|im_end|>\n",
          .answer_open = "<|im_start|>assistant\n",
          .answer_close = "<|im_end|>",
          .turn_close = "\n"};
}

constexpr std::array kTemplates = {plain, plain_eos, vicuna_v1, chatml};

}  // namespace

std::optional<ChatTemplate> find_template(std::string_view name) {
  for (const auto make : kTemplates) {
    ChatTemplate t = make();
    if (t.name == name) return t;
  }
  return std::nullopt;
}

std::vector<std::string> template_names() {
  std::vector<std::string> names;
  for (const auto make : kTemplates) names.push_back(make().name);
  return names;
}

}  // namespace mm::text
