#include "lib/text/render.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/text/segments.h"
#include "lib/text/utf8.h"

namespace mm::text {
namespace {

using Turns = std::vector<Turn>;

int32_t count_marks(std::string_view text) {
  int32_t count = 0;
  for (size_t at = text.find(kImageMark); at != std::string_view::npos;
       at = text.find(kImageMark, at + kImageMark.size()))
    ++count;
  return count;
}

// LLaVA's rule: n marks first, one line each, then the stripped rest.
std::string marks_to_front(std::string_view text, bool keeps_text) {
  std::string rest, front;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(kImageMark)) {
      front += kImageMark;
      if (keeps_text) front += '\n';
      at += kImageMark.size();
    } else {
      rest += text[at++];
    }
  }
  if (!keeps_text) return front;
  return front.empty() ? rest : std::string(strip(front + std::string(strip(rest))));
}

// The conversation split into its system text and alternating user and assistant turns.
struct Dialogue {
  std::string system;
  Turns turns;
};

std::optional<Failure> check_order(const Turns& turns, bool prompt_only) {
  for (size_t i = 0; i < turns.size(); ++i) {
    const Role want = i % 2 == 0 ? Role::kUser : Role::kAssistant;
    if (turns[i].role != want) {
      return Failure{"bad_turns",
                     fmt::format("turn {} should be {}; user and assistant must alternate", i + 1,
                                 want == Role::kUser ? "the user's" : "the assistant's")};
    }
  }
  if (turns.empty()) return Failure{"bad_turns", "no user turn"};
  const bool ends_open = turns.size() % 2 == 1;
  if (ends_open && !prompt_only) return Failure{"bad_turns", "the last user turn has no answer"};
  if (!ends_open && prompt_only) return Failure{"bad_turns", "a prompt must end with a user turn"};
  return std::nullopt;
}

Result<Dialogue> make_dialogue(const Conversation& conversation, const RenderOptions& options) {
  Dialogue dialogue;
  auto turn = conversation.turns.begin();
  if (turn != conversation.turns.end() && turn->role == Role::kSystem)
    dialogue.system = (turn++)->text;
  turn = std::find_if(turn, conversation.turns.end(),
                      [](const Turn& t) { return t.role == Role::kUser; });
  dialogue.turns.assign(turn, conversation.turns.end());
  for (const Turn& t : dialogue.turns) {
    if (!is_valid_utf8(t.text))
      return Failure{"bad_utf8", "a turn is not valid UTF-8; convert the file"};
  }
  if (!is_valid_utf8(dialogue.system))
    return Failure{"bad_utf8", "the system text is not valid UTF-8; convert the file"};
  if (auto failure = check_order(dialogue.turns, options.prompt_only)) return *failure;
  return dialogue;
}

Segments build_segments(const Dialogue& dialogue, const ChatTemplate& chat,
                        const Tokenizer& tokenizer, const RenderOptions& options) {
  Segments out(tokenizer, chat);
  out.begin(chat.begin);
  std::string system = !dialogue.system.empty()  ? dialogue.system
                       : !options.system.empty() ? options.system
                                                 : chat.system;
  const auto own = [&](const std::string& text) {
    return chat.strips_text ? std::string(strip(text)) : text;
  };
  if (!options.no_system && !system.empty()) {
    out.add_template(chat.system_open, false);
    out.add_text(own(system), false);
    out.add_template(chat.system_close, false);
  }
  for (const Turn& turn : dialogue.turns) {
    if (turn.role == Role::kUser) {
      out.add_template(chat.user_open, false);
      out.add_user_text(chat.marks_first || !chat.keeps_user_text
                            ? marks_to_front(own(turn.text), chat.keeps_user_text)
                            : own(turn.text));
      out.add_template(chat.user_close, false);
      out.add_template(chat.answer_open, false);
    } else {
      out.add_template(chat.answer_lead, true);
      out.add_text(own(turn.text), true);
      out.add_template(chat.answer_close, true);
      out.add_template(chat.turn_close, false);
    }
  }
  return out;
}

Result<Dialogue> make_document(const Conversation& conversation) {
  for (const Turn& turn : conversation.turns) {
    if (!is_valid_utf8(turn.text))
      return Failure{"bad_utf8", "the document is not valid UTF-8; convert the file"};
  }
  return Dialogue{{}, conversation.turns};
}

Segments document_segments(const Turns& turns, const ChatTemplate& chat,
                           const Tokenizer& tokenizer) {
  Segments out(tokenizer, chat);
  out.begin("{bos}");
  for (const Turn& turn : turns) {
    if (turn.role == Role::kUser) {
      out.add_user_text(turn.text);
    } else {
      out.add_text(turn.text, true);
    }
  }
  out.add_template("{eos}", true);
  return out;
}

std::optional<Failure> cut(RenderedSample& sample, int32_t max_length) {
  const auto length = static_cast<int32_t>(sample.ids.size());
  if (max_length <= 0 || length <= max_length) return std::nullopt;
  for (const ImageSpan& image : sample.images) {
    if (image.begin + image.count > max_length) {
      return Failure{
          "too_long",
          fmt::format("a picture ends at token {} of {}, the limit is {}; pictures are not cut",
                      image.begin + image.count, length, max_length)};
    }
  }
  sample.ids.resize(max_length);
  sample.labels.resize(max_length);
  sample.cut_tokens = length - max_length;
  return std::nullopt;
}

std::optional<Failure> check_images(const Dialogue& dialogue, int32_t images) {
  int32_t marks = 0;
  for (const Turn& turn : dialogue.turns)
    marks += turn.role == Role::kUser ? count_marks(turn.text) : 0;
  if (marks == images) return std::nullopt;
  return Failure{"image_count", fmt::format("{} {} marks in the user turns, but {} pictures", marks,
                                            kImageMark, images)};
}

}  // namespace

std::optional<Role> role_from_name(std::string_view name) {
  if (name == "human" || name == "user") return Role::kUser;
  if (name == "gpt" || name == "assistant") return Role::kAssistant;
  if (name == "system") return Role::kSystem;
  return std::nullopt;
}

Conversation caption_conversation(std::string caption, int32_t images) {
  std::string marks;
  for (int32_t i = 0; i < images; ++i) marks += kImageMark;
  return {{{Role::kUser, std::move(marks)}, {Role::kAssistant, std::move(caption)}}, images};
}

int32_t picture_id(const ChatTemplate& chat, const Tokenizer& tokenizer) {
  if (chat.image.empty()) return tokenizer.image_id();
  for (const Mark& mark : tokenizer.marks())
    if (mark.text == chat.image) return mark.id;
  throw UsageError("the template's mark {} is not in the tokenizer; choose a template that fits it",
                   chat.image);
}

int32_t image_token_count(int32_t side, int32_t patch, bool has_class_token,
                          bool keep_class_token) {
  if (side <= 0 || patch <= 0 || side < patch)
    throw UsageError("pictures of side {} cannot be cut into patches of {}", side, patch);
  const int32_t across = side / patch;
  return across * across + (has_class_token && keep_class_token ? 1 : 0);
}

Result<RenderedSample> render(const Conversation& conversation, const ChatTemplate& chat,
                              const Tokenizer& tokenizer, const RenderOptions& options) {
  auto dialogue =
      conversation.document ? make_document(conversation) : make_dialogue(conversation, options);
  if (!dialogue) return dialogue.failure();
  if (auto failure = check_images(*dialogue, conversation.images)) return *failure;
  if (conversation.images > 0 && picture_id(chat, tokenizer) < 0)
    throw UsageError("the tokenizer has no {} mark; load it with one", kImageMark);
  const Segments segments = conversation.document
                                ? document_segments(dialogue->turns, chat, tokenizer)
                                : build_segments(*dialogue, chat, tokenizer, options);
  RenderedSample sample = segments.tokenise(options.image_tokens, options.picture_tokens);
  if (auto failure = cut(sample, options.max_length)) return *failure;
  sample.targets = static_cast<int32_t>(std::count_if(sample.labels.begin(), sample.labels.end(),
                                                      [](int32_t l) { return l != kIgnore; }));
  if (sample.targets == 0 && !options.prompt_only) {
    return Failure{"no_targets",
                   fmt::format("no token to train on: {} tokens, {} cut off by the limit of {}",
                               sample.ids.size(), sample.cut_tokens, options.max_length)};
  }
  return sample;
}

}  // namespace mm::text
