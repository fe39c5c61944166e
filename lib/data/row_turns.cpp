#include "lib/data/row_turns.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/data/row_fields.h"

namespace mm::data {
namespace {

using text::kImageMark;
using text::Role;

size_t marks_in(std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(kImageMark); at != std::string_view::npos;
       at = text.find(kImageMark, at + kImageMark.size()))
    ++count;
  return count;
}

constexpr std::string_view kRoleKeys[] = {"from", "role"};
constexpr std::string_view kTextKeys[] = {"value", "content"};

Result<Role> role_of(const Json& item, size_t number) {
  const Json* role = find_field(item, kRoleKeys);
  if (role == nullptr || !role->is_string())
    return bad_row(fmt::format("turn {} has no from or role", number));
  const auto known = text::role_from_name(role->get_ref<const std::string&>());
  if (known) return *known;
  return bad_row(fmt::format("turn {} is from \"{}\"; known: human, user, gpt, assistant, system",
                             number, role->get<std::string>()));
}

Result<text::Turn> turn_of(const Json& item, size_t number) {
  if (!item.is_object())
    return bad_row(fmt::format("turn {} is {}, expected an object", number, item.type_name()));
  const auto role = role_of(item, number);
  if (!role) return role.failure();
  const Json* value = find_field(item, kTextKeys);
  if (value == nullptr || !value->is_string())
    return bad_row(fmt::format("turn {} has no text in value or content", number));
  return text::Turn{*role, value->get<std::string>()};
}

/// Reads messages turn by turn; keeps the pictures in the order of their marks.
class MessageReader {
 public:
  explicit MessageReader(RowPictures& given) : given_(given) {}

  Result<text::Turn> read(const Json& item, size_t number) {
    if (!item.is_object())
      return bad_row(fmt::format("turn {} is {}, expected an object", number, item.type_name()));
    const auto role = role_of(item, number);
    if (!role) return role.failure();
    if (*role == Role::kAssistant && is_untrained(item)) {
      return bad_row(fmt::format("turn {} asks for no loss; every answer is trained on", number));
    }
    text::Turn turn{*role, {}};
    const Json* content = find_field(item, kTextKeys);
    if (content != nullptr && content->is_string()) {
      add_text(content->get_ref<const std::string&>(), turn);
      return turn;
    }
    if (content == nullptr || !content->is_array())
      return bad_row(fmt::format("turn {} has no text or list of parts in content", number));
    for (const Json& part : *content) {
      if (auto failure = add_part(part, turn)) {
        failure->message = fmt::format("turn {}: {}", number, failure->message);
        return *failure;
      }
    }
    return turn;
  }

  /// After the last turn.
  std::optional<Failure> finish() {
    // A row without any mark is for the rule on missing marks, not for this count.
    if (wanted_ == 0 && ordered_.names.empty()) return std::nullopt;
    if (wanted_ != given_.names.size()) {
      return Failure{"image_count", fmt::format("{} marks take pictures from the row's list of {}",
                                                wanted_, given_.names.size())};
    }
    given_ = std::move(ordered_);
    return std::nullopt;
  }

 private:
  static bool is_untrained(const Json& item) {
    for (const std::string_view key : {"loss", "loss_scale", "weight", "train"}) {
      const Json* flag = find_field(item, key);
      if (flag == nullptr) continue;
      if (flag->is_boolean() && !flag->get<bool>()) return true;
      if (flag->is_number() && flag->get<double>() == 0) return true;
    }
    return false;
  }

  void take_next() {
    if (wanted_ < given_.names.size()) ordered_.take(given_, wanted_);
    ++wanted_;
  }

  void add_text(const std::string& text, text::Turn& turn) {
    if (turn.role == Role::kUser) {
      for (size_t left = marks_in(text); left > 0; --left) take_next();
    }
    if (turn.text.ends_with(kImageMark) && !text.starts_with('\n')) turn.text += '\n';
    turn.text += text;
  }

  std::optional<Failure> add_part(const Json& part, text::Turn& turn) {
    const Json* type = part.is_object() ? find_field(part, "type") : nullptr;
    if (type == nullptr || !type->is_string()) return bad_row("a part has no type");
    const auto& name = type->get_ref<const std::string&>();
    if (name == "text") {
      const Json* text = find_field(part, "text");
      if (text == nullptr || !text->is_string()) return bad_row("a text part has no text");
      add_text(text->get_ref<const std::string&>(), turn);
      return std::nullopt;
    }
    if (name == "image" || name == "image_url") return add_image(part, name, turn);
    return bad_row(fmt::format("a part is of type \"{}\"; known: text, image, image_url", name));
  }

  std::optional<Failure> add_image(const Json& part, const std::string& type, text::Turn& turn) {
    if (turn.role != Role::kUser) return bad_row("a picture in a turn that is not the user's");
    const std::string_view keys[] = {type, "image", "url", "path"};
    const Json* value = find_field(part, keys);
    if (value == nullptr) {
      take_next();
    } else {
      const size_t before = ordered_.names.size();
      if (auto failure = add_picture(*value, ordered_)) return failure;
      if (ordered_.names.size() == before) return bad_row("a picture part is empty");
    }
    if (!turn.text.empty() && !turn.text.ends_with('\n')) turn.text += '\n';
    turn.text += kImageMark;
    return std::nullopt;
  }

  RowPictures& given_;
  RowPictures ordered_;
  size_t wanted_ = 0;  ///< marks so far that take from `given_`
};

}  // namespace

size_t count_marks(const text::Conversation& conversation) {
  size_t count = 0;
  for (const text::Turn& turn : conversation.turns) {
    if (turn.role == Role::kUser) count += marks_in(turn.text);
  }
  return count;
}

Result<text::Conversation> conversation_from_turns(const Json& turns) {
  const auto list = as_list(turns);
  if (!list) return bad_row(fmt::format("conversations is {}, expected a list", turns.type_name()));
  text::Conversation conversation;
  for (const Json& item : *list) {
    auto turn = turn_of(item, conversation.turns.size());
    if (!turn) return turn.failure();
    conversation.turns.push_back(std::move(*turn));
  }
  return conversation;
}

Result<text::Conversation> conversation_from_messages(const Json& messages, RowPictures& pictures) {
  const auto list = as_list(messages);
  if (!list) return bad_row(fmt::format("messages is {}, expected a list", messages.type_name()));
  text::Conversation conversation;
  MessageReader reader(pictures);
  for (const Json& item : *list) {
    auto turn = reader.read(item, conversation.turns.size());
    if (!turn) return turn.failure();
    conversation.turns.push_back(std::move(*turn));
  }
  if (auto failure = reader.finish()) return *failure;
  return conversation;
}

}  // namespace mm::data
