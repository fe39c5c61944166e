#include "lib/data/row_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "lib/data/image_path.h"
#include "lib/data/row_fields.h"

namespace mm::data {
namespace {

using text::Role;

constexpr std::string_view kSentenceGap = " ", kParagraphGap = "\n\n";

void add_text(std::string_view text, std::string_view gap, text::Conversation& document) {
  if (text.empty()) return;
  if (document.turns.empty() || document.turns.back().role == Role::kUser) {
    document.turns.push_back({Role::kAssistant, std::string(text)});
    return;
  }
  document.turns.back().text += gap;
  document.turns.back().text += text;
}

void add_mark(text::Conversation& document) {
  document.turns.push_back({Role::kUser, std::string(text::kImageMark)});
}

Result<RowDocument> finish(RowDocument document) {
  document.conversation.document = true;
  document.conversation.images = static_cast<int32_t>(document.pictures.names.size());
  const auto& turns = document.conversation.turns;
  const bool has_text = std::any_of(turns.begin(), turns.end(),
                                    [](const text::Turn& t) { return t.role == Role::kAssistant; });
  if (!has_text) return Failure{"empty_caption", "the document has no text"};
  return document;
}

/// A picture of MMC4 and the sentence that it stands before.
struct Placed {
  size_t sentence = 0;
  std::string name;
};

Result<std::vector<Placed>> placed_pictures(const Json& infos, size_t sentences) {
  std::vector<Placed> placed;
  for (const Json& info : infos) {
    if (!info.is_object()) return bad_row("an entry of image_info is not an object");
    const Json* name = find_field(info, "image_name");
    if (name == nullptr) continue;
    const Json* index = find_field(info, "matched_text_index");
    if (!name->is_string() || index == nullptr || !index->is_number_unsigned() ||
        index->get<uint64_t>() >= sentences) {
      return bad_row(fmt::format(
          "an entry of image_info needs image_name and matched_text_index below {}", sentences));
    }
    placed.push_back({index->get<size_t>(), name->get<std::string>()});
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed& a, const Placed& b) { return a.sentence < b.sentence; });
  return placed;
}

/// Adds a picture of OBELICS; URLs are kept as names, so that they are reported as missing.
std::optional<Failure> add_obelics_picture(const Json& image, RowDocument& document) {
  if (image.is_string()) {
    const auto& name = image.get_ref<const std::string&>();
    if (name.starts_with("http://") || name.starts_with("https://")) {
      document.pictures.add(name);
      add_mark(document.conversation);
      return std::nullopt;
    }
  }
  const size_t before = document.pictures.names.size();
  if (auto failure = add_picture(image, document.pictures)) return failure;
  if (document.pictures.names.size() > before) add_mark(document.conversation);
  return std::nullopt;
}

}  // namespace

Result<RowDocument> document_from_mmc4(const Json& row) {
  const Json& texts = row.at("text_list");
  const Json& infos = row.at("image_info");
  if (!texts.is_array() || !infos.is_array())
    return bad_row("text_list and image_info must be lists");
  const auto placed = placed_pictures(infos, texts.size());
  if (!placed) return placed.failure();
  RowDocument document;
  auto next = placed->begin();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].is_string()) return bad_row(fmt::format("text_list[{}] is not text", i));
    for (; next != placed->end() && next->sentence == i; ++next) {
      document.pictures.add(next->name);
      add_mark(document.conversation);
    }
    add_text(texts[i].get_ref<const std::string&>(), kSentenceGap, document.conversation);
  }
  return finish(std::move(document));
}

Result<RowDocument> document_from_obelics(const Json& row) {
  const Json& texts = row.at("texts");
  const Json& images = row.at("images");
  if (!texts.is_array() || !images.is_array() || texts.size() != images.size())
    return bad_row("texts and images must be lists of one length");
  RowDocument document;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].is_null() == images[i].is_null())
      return bad_row(fmt::format("index {} needs either a text or an image", i));
    if (texts[i].is_string()) {
      add_text(texts[i].get_ref<const std::string&>(), kParagraphGap, document.conversation);
    } else if (!texts[i].is_null()) {
      return bad_row(fmt::format("texts[{}] is {}", i, texts[i].type_name()));
    } else if (auto failure = add_obelics_picture(images[i], document)) {
      return *failure;
    }
  }
  return finish(std::move(document));
}

std::vector<LedgerEntry> drop_missing_pictures(Record& record, const std::filesystem::path& root,
                                               Links links) {
  std::vector<LedgerEntry> dropped;
  if (!record.conversation.document) return dropped;
  RowPictures kept;
  std::vector<text::Turn> turns;
  size_t picture = 0;
  for (text::Turn& turn : record.conversation.turns) {
    if (turn.role != Role::kUser) {
      // Two texts that a picture kept apart stay apart.
      const bool joins = !turns.empty() && turns.back().role == Role::kAssistant;
      if (joins) turn.text.insert(0, kParagraphGap);
      turns.push_back(std::move(turn));
      continue;
    }
    const size_t i = picture++;
    const auto path = record.content(i) != nullptr
                          ? Result<std::filesystem::path>(root)
                          : resolve_image_path(root, record.images[i], links);
    if (path || path.failure().kind != "missing") {
      kept.add(record.images[i], i < record.carried.size() ? record.carried[i] : nullptr);
      turns.push_back(std::move(turn));
      continue;
    }
    dropped.push_back({record.row, record.key, record.images[i], "missing",
                       "left out of its document: " + path.failure().message, true});
  }
  record.conversation.turns = std::move(turns);
  record.conversation.images = static_cast<int32_t>(kept.names.size());
  kept.move_to(record);
  return dropped;
}

}  // namespace mm::data
