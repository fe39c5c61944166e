#include "lib/data/record_from_json.h"

#include <optional>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/result.h"

namespace mm::data {
namespace {

const Json* find(const Json& row, std::string_view first, std::string_view second) {
  for (const auto key : {first, second}) {
    if (const auto found = row.find(key); found != row.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

Failure bad_row(std::string message) { return {"bad_row", std::move(message)}; }

Result<std::vector<std::string>> images_of(const Json& row) {
  if (row.contains("video")) return bad_row("has a video; only pictures are read");
  std::vector<std::string> images;
  const Json* value = find(row, "image", "images");
  if (value == nullptr) return images;
  const auto add = [&](const Json& item) {
    if (!item.is_string()) return false;
    if (!item.get_ref<const std::string&>().empty()) images.push_back(item.get<std::string>());
    return true;
  };
  if (value->is_array()) {
    for (const Json& item : *value) {
      if (!add(item))
        return bad_row(fmt::format("a picture is {}, expected its path", item.type_name()));
    }
  } else if (!add(*value)) {
    return bad_row(
        fmt::format("image is {}, expected a path or a list of paths", value->type_name()));
  }
  return images;
}

Result<text::Turn> turn_of(const Json& item, size_t number) {
  if (!item.is_object())
    return bad_row(fmt::format("turn {} is {}, expected an object", number, item.type_name()));
  const Json* role = find(item, "from", "role");
  const Json* value = find(item, "value", "content");
  if (role == nullptr || !role->is_string())
    return bad_row(fmt::format("turn {} has no from or role", number));
  if (value == nullptr || !value->is_string())
    return bad_row(fmt::format("turn {} has no text in value or content", number));
  const auto known = text::role_from_name(role->get_ref<const std::string&>());
  if (!known) {
    return bad_row(fmt::format("turn {} is from \"{}\"; known: human, user, gpt, assistant, system",
                               number, role->get<std::string>()));
  }
  return text::Turn{*known, value->get<std::string>()};
}

Result<text::Conversation> conversation_of(const Json& row, size_t images,
                                           const std::string& question) {
  if (const Json* turns = find(row, "conversations", "messages")) {
    if (!turns->is_array())
      return bad_row(fmt::format("conversations is {}, expected a list", turns->type_name()));
    text::Conversation conversation;
    conversation.images = static_cast<int32_t>(images);
    for (const Json& item : *turns) {
      auto turn = turn_of(item, conversation.turns.size());
      if (!turn) return turn.failure();
      conversation.turns.push_back(std::move(*turn));
    }
    return conversation;
  }
  const Json* caption = find(row, "caption", "text");
  if (caption == nullptr) return bad_row("has neither conversations nor caption nor text");
  if (!caption->is_string())
    return bad_row(fmt::format("the caption is {}, expected a string", caption->type_name()));
  if (caption->get_ref<const std::string&>().empty())
    return Failure{"empty_caption", "the caption is empty"};
  return captioned(caption->get<std::string>(), images, question);
}

/// The id as text, else nothing.
std::optional<std::string> id_of(const Json& row) {
  const auto id = row.find("id");
  if (id == row.end()) return std::nullopt;
  if (id->is_string() && !id->get_ref<const std::string&>().empty()) return id->get<std::string>();
  if (id->is_number_integer()) return id->dump();
  return std::nullopt;
}

}  // namespace

text::Conversation captioned(std::string caption, size_t images, const std::string& question) {
  auto conversation = text::caption_conversation(std::move(caption), static_cast<int32_t>(images));
  if (!question.empty()) {
    std::string& user = conversation.turns.front().text;
    if (!user.empty() && !user.ends_with('\n')) user += '\n';
    user += question;
  }
  return conversation;
}

SourceItem record_from_json(const Json& row, uint64_t row_number, const std::string& question) {
  Record record{.row = row_number, .key = fmt::format("row {}", row_number)};
  const auto refuse = [&](const Failure& failure) {
    return LedgerEntry{row_number, record.key, {}, failure.kind, failure.message};
  };
  if (!row.is_object())
    return refuse(bad_row(fmt::format("is {}, expected an object", row.type_name())));
  const auto id = id_of(row);
  if (id) record.key = *id;
  auto images = images_of(row);
  if (!images) return refuse(images.failure());
  record.images = std::move(*images);
  if (!id && !record.images.empty()) record.key = record.images.front();
  auto conversation = conversation_of(row, record.images.size(), question);
  if (!conversation) return refuse(conversation.failure());
  record.conversation = std::move(*conversation);
  return record;
}

SourceItem record_from_text(std::string_view text, std::string_view origin, uint64_t row_number,
                            const std::string& question) {
  try {
    return record_from_json(parse_json(text, origin), row_number, question);
  } catch (const DataError& error) {
    return LedgerEntry{row_number, fmt::format("row {}", row_number), {}, "bad_json", error.what()};
  }
}

}  // namespace mm::data
