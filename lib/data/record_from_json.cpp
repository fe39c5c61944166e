#include "lib/data/record_from_json.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/base/result.h"
#include "lib/data/class_labels.h"
#include "lib/data/row_documents.h"
#include "lib/data/row_fields.h"
#include "lib/data/row_pictures.h"
#include "lib/data/row_turns.h"

namespace mm::data {
namespace {

std::string_view shape_name(RowShape shape) {
  switch (shape) {
    case RowShape::kAny:
      return "any";
    case RowShape::kConversations:
      return "conversations";
    case RowShape::kMessages:
      return "messages";
    case RowShape::kCaption:
      return "a caption";
    case RowShape::kMmc4:
      return "an MMC4 document";
    case RowShape::kObelics:
      return "an OBELICS document";
  }
  return "";
}

void prepend_marks(text::Conversation& conversation, size_t images) {
  for (text::Turn& turn : conversation.turns) {
    if (turn.role != text::Role::kUser) continue;
    std::string marks;
    for (; images > 0; --images) marks.append(text::kImageMark) += '\n';
    turn.text.insert(0, marks);
    return;
  }
}

/// The first caption of a list that is not empty, or the caption.
Result<std::string> caption_of(const Json& row) {
  const Json* value = find_field(row, caption_columns());
  if (value == nullptr) return bad_row("has neither conversations nor messages nor a caption");
  if (value->is_array()) {
    for (const Json& item : *value) {
      if (item.is_string() && !item.get_ref<const std::string&>().empty())
        return item.get<std::string>();
    }
    return Failure{"empty_caption", "no caption in the list"};
  }
  if (!value->is_string())
    return bad_row(fmt::format("the caption is {}, expected a string", value->type_name()));
  if (value->get_ref<const std::string&>().empty())
    return Failure{"empty_caption", "the caption is empty"};
  return value->get<std::string>();
}

/// Conversations, messages or a caption, and their pictures.
Result<RowDocument> dialogue_of(const Json& row, RowShape shape, const RowOptions& options) {
  auto pictures = pictures_of_row(row);
  if (!pictures) return pictures.failure();
  RowDocument dialogue{{}, std::move(*pictures)};
  if (shape == RowShape::kCaption) {
    auto caption = caption_of(row);
    if (!caption) return caption.failure();
    dialogue.conversation =
        captioned(std::move(*caption), dialogue.pictures.names.size(), options.question);
    return dialogue;
  }
  auto conversation = shape == RowShape::kMessages
                          ? conversation_from_messages(row.at("messages"), dialogue.pictures)
                          : conversation_from_turns(row.at("conversations"));
  if (!conversation) return conversation.failure();
  dialogue.conversation = std::move(*conversation);
  const size_t images = dialogue.pictures.names.size();
  dialogue.conversation.images = static_cast<int32_t>(images);
  if (options.missing_marks == MissingMarks::kPrepend && images > 0 &&
      count_marks(dialogue.conversation) == 0) {
    prepend_marks(dialogue.conversation, images);
  }
  return dialogue;
}

/// The class of a row: a name, or a whole number; or the folder of its picture.
Result<std::string> label_of(const Json& row, const RowPictures& pictures,
                             const std::string& column) {
  if (column == kFolderLabels)
    return pictures.names.empty() ? std::string() : folder_label(pictures.names.front());
  const Json* value = find_field(row, column);
  if (value == nullptr) return Failure{"no_label", fmt::format("has no \"{}\"", column)};
  if (value->is_number_integer()) return value->dump();
  if (value->is_string()) return value->get<std::string>();
  return bad_row(
      fmt::format("\"{}\" is {}, expected a name or a whole number", column, value->type_name()));
}

Result<RowDocument> content_of(const Json& row, const RowOptions& options) {
  if (!options.labels.empty()) {
    auto pictures = pictures_of_row(row);
    if (!pictures) return pictures.failure();
    const size_t count = pictures->names.size();
    return RowDocument{captioned({}, count, {}), std::move(*pictures)};
  }
  const RowShape shape = shape_of(row);
  if (options.shape != RowShape::kAny && shape != options.shape) {
    return bad_row(fmt::format("is {}, expected {}", shape_name(shape), shape_name(options.shape)));
  }
  if (shape == RowShape::kMmc4) return document_from_mmc4(row);
  if (shape == RowShape::kObelics) return document_from_obelics(row);
  return dialogue_of(row, shape, options);
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

RowShape shape_of(const Json& row) {
  const auto has = [&](std::string_view key) { return find_field(row, key) != nullptr; };
  if (has("conversations")) return RowShape::kConversations;
  if (has("messages")) return RowShape::kMessages;
  if (has("text_list") && has("image_info")) return RowShape::kMmc4;
  if (has("texts") && has("images")) return RowShape::kObelics;
  return RowShape::kCaption;
}

SourceItem record_from_json(const Json& row, uint64_t row_number, const RowOptions& options) {
  Record record{.row = row_number, .key = fmt::format("row {}", row_number)};
  const auto refuse = [&](const Failure& failure) {
    return LedgerEntry{row_number, record.key, {}, failure.kind, failure.message};
  };
  if (!row.is_object())
    return refuse(bad_row(fmt::format("is {}, expected an object", row.type_name())));
  const auto id = id_of(row);
  if (id) record.key = *id;
  auto content = content_of(row, options);
  if (!content) return refuse(content.failure());
  if (!options.labels.empty()) {
    auto label = label_of(row, content->pictures, options.labels);
    if (!label) return refuse(label.failure());
    record.label = std::move(*label);
  }
  content->pictures.move_to(record);
  if (!id && !record.images.empty()) record.key = record.images.front();
  record.conversation = std::move(content->conversation);
  return record;
}

SourceItem record_from_text(std::string_view text, std::string_view origin, uint64_t row_number,
                            const RowOptions& options) {
  try {
    return record_from_json(parse_json(text, origin), row_number, options);
  } catch (const DataError& error) {
    return LedgerEntry{row_number, fmt::format("row {}", row_number), {}, "bad_json", error.what()};
  }
}

}  // namespace mm::data
