#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/folder_listing.h"
#include "lib/data/record_from_json.h"
#include "lib/data/row_documents.h"
#include "lib/data/row_fields.h"
#include "lib/data/row_pictures.h"
#include "lib/data/source_openers.h"
#include "lib/data/tar_reader.h"
#include "lib/data/text_stream.h"
#include "lib/text/utf8.h"

namespace mm::data {
namespace {

constexpr uint64_t kMaxPictureBytes = uint64_t{256} << 20;
constexpr size_t kMaxMembers = 4096;  ///< of one sample; more is no sample but a broken naming

/// Path up to the first dot of its last part, and the rest in lower case.
struct MemberName {
  std::string key, suffix;
};

MemberName split_name(const std::string& path) {
  const size_t base = path.find_last_of('/') + 1;
  const size_t dot = path.find('.', base);
  MemberName name{path.substr(0, dot), dot == std::string::npos ? "" : path.substr(dot + 1)};
  std::transform(name.suffix.begin(), name.suffix.end(), name.suffix.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

bool is_picture(const std::string& suffix) { return is_picture_name("x." + suffix); }
bool is_text(const std::string& suffix) {
  return suffix == "txt" || suffix == "text" || suffix == "caption" || suffix == "json";
}

/// EXIF's orientation as img2dataset writes it into the json: the tag, in exifread's words, of the
/// file that it read. Pictures that it wrote anew lost the tag, but were not turned.
int told_orientation(const Json& json) {
  constexpr std::array<std::string_view, 8> kWords = {"Horizontal (normal)",
                                                      "Mirrored horizontal",
                                                      "Rotated 180",
                                                      "Mirrored vertical",
                                                      "Mirrored horizontal then rotated 90 CCW",
                                                      "Rotated 90 CW",
                                                      "Mirrored horizontal then rotated 90 CW",
                                                      "Rotated 90 CCW"};
  const auto exif = json.find("exif");
  if (exif == json.end() || !exif->is_string()) return 1;
  Json tags;
  try {
    tags = parse_json(exif->get_ref<const std::string&>(), "exif");
  } catch (const DataError&) {
    return 1;  // like a damaged tag in the file itself
  }
  const auto tag = tags.is_object() ? tags.find("Image Orientation") : tags.end();
  if (tag == tags.end() || !tag->is_string()) return 1;
  const auto found = std::find(kWords.begin(), kWords.end(), tag->get_ref<const std::string&>());
  return found == kWords.end() ? 1 : static_cast<int>(found - kWords.begin()) + 1;
}

/// Neighbouring members of one key.
struct Group {
  std::string key;
  std::vector<std::string> suffixes;
  RowPictures pictures;
  std::optional<std::string> caption, json;
  std::optional<std::string> label;  ///< content of the member that labels were asked from
  std::optional<Failure> failure;    ///< the first thing that is wrong with it
  uint64_t bytes = 0;

  void fail(Failure why) {
    if (!failure) failure = std::move(why);
  }
};

class WebdatasetSource final : public RecordSource {
 public:
  explicit WebdatasetSource(const SourceOptions& options)
      : rows_(options.rows()), tar_(options.path) {}

  std::optional<SourceItem> next() override {
    while (!ended_) {
      auto group = next_group();
      if (group) return to_item(std::move(*group));
      if (!tar_.problem().empty()) return damage();
    }
    return std::nullopt;
  }

 private:
  /// Members until the key changes; nothing at the end or at damage.
  std::optional<Group> next_group() {
    Group group;
    for (;;) {
      if (!waiting_) waiting_ = tar_.next();
      if (!waiting_) {
        ended_ = tar_.problem().empty();
        // The sample that the damage cut may lack members: it is reported, not packed.
        if (group.suffixes.empty() || !ended_) {
          cut_key_ = group.key;
          return std::nullopt;
        }
        return group;
      }
      const MemberName name = split_name(waiting_->path);
      if (!group.suffixes.empty() && name.key != group.key) return group;
      any_member_ = true;
      group.key = name.key;
      add(*waiting_, name.suffix, group);
      waiting_.reset();
    }
  }

  void add(const TarMember& member, const std::string& suffix, Group& group) {
    if (group.suffixes.size() == kMaxMembers) {
      group.fail({"bad_row", fmt::format("has more than {} members", kMaxMembers)});
      return;
    }
    const bool twice =
        std::find(group.suffixes.begin(), group.suffixes.end(), suffix) != group.suffixes.end();
    group.suffixes.push_back(suffix);
    if (twice) return group.fail({"duplicate_member", fmt::format("has two .{}", suffix)});
    const bool label = suffix == rows_.labels && suffix != "json";
    if (!is_picture(suffix) && !is_text(suffix) && !label) return;
    if (member.is_link) return group.fail({"bad_row", fmt::format("{} is a link", member.path)});
    auto content = tar_.content(is_picture(suffix) ? kMaxPictureBytes : kMaxRowBytes);
    if (!content) return group.fail({"too_large", fmt::format("{} is too large", member.path)});
    group.bytes += content->size();
    if (group.bytes > 2 * kMaxPictureBytes)
      return group.fail({"too_large", "its members are too large together"});
    if (is_picture(suffix)) {
      group.pictures.add(member.path, std::make_shared<const std::string>(std::move(*content)));
    } else if (label) {
      group.label = std::move(*content);
    } else if (suffix == "json") {
      group.json = std::move(*content);
    } else if (!group.caption) {
      group.caption = std::move(*content);
    }
  }

  SourceItem to_item(Group group) {
    const uint64_t row = row_++;
    const std::string key = text::replace_invalid_utf8(group.key);
    const auto refuse = [&](const Failure& failure) {
      return LedgerEntry{row, key, {}, failure.kind, failure.message, failure.kind == "no_caption"};
    };
    if (group.failure) return refuse(*group.failure);
    if (!text::is_valid_utf8(group.key)) return refuse({"bad_name", "the key is not UTF-8"});
    Json json = Json::object();
    if (group.json) {
      try {
        json = parse_json(*group.json, group.key + ".json");
      } catch (const DataError& error) {
        return refuse({"bad_json", error.what()});
      }
      if (!json.is_object()) return refuse(bad_row("its .json is not an object"));
    }
    if (shape_of(json) == RowShape::kCaption && group.caption) {
      if (!text::is_valid_utf8(*group.caption))
        return refuse({"bad_utf8", "the caption is not UTF-8"});
      json["caption"] = std::string(text::strip(*group.caption));
    }
    if (group.label) {
      if (!text::is_valid_utf8(*group.label)) return refuse({"bad_utf8", "the label is not UTF-8"});
      json[rows_.labels] = std::string(text::strip(*group.label));
    }
    return from_json(std::move(json), std::move(group), row, refuse);
  }

  /// Pictures come from the members; what the row says of files stands in for their order only.
  template <typename Refuse>
  SourceItem from_json(Json json, Group group, uint64_t row, const Refuse& refuse) {
    const RowShape shape = shape_of(json);
    if (shape == RowShape::kMmc4 || shape == RowShape::kObelics)
      return refuse(bad_row("interleaved documents are read from JSONL or Parquet"));
    if (shape == RowShape::kCaption) {
      if (rows_.labels.empty() && find_field(json, caption_columns()) == nullptr)
        return refuse({"no_caption", "no .txt, and no caption in a .json"});
      if (group.pictures.names.empty())
        return refuse(bad_row("a caption without picture; do members of a sample stand together?"));
    }
    for (const std::string_view column : image_columns()) json.erase(std::string(column));
    json["image"] = Json::array();
    for (size_t i = 0; i < group.pictures.names.size(); ++i)
      json["image"].push_back(group.pictures.names[i]);
    json["id"] = text::replace_invalid_utf8(group.key);
    SourceItem item = record_from_json(json, row, rows_);
    if (auto* record = std::get_if<Record>(&item)) {
      record->orientation = told_orientation(json);
      if (record->images != group.pictures.names)
        return refuse(bad_row("its .json brings pictures of its own beside the members"));
      group.pictures.move_to(*record);
    }
    return item;
  }

  SourceItem damage() {
    ended_ = true;
    if (!any_member_) throw DataError("{}", tar_.problem());
    return LedgerEntry{row_++,
                       text::replace_invalid_utf8(cut_key_),
                       {},
                       "truncated",
                       fmt::format("{}; samples from here on are lost", tar_.problem())};
  }

  const RowOptions rows_;
  TarReader tar_;
  std::optional<TarMember> waiting_;
  std::string cut_key_;
  bool any_member_ = false;
  bool ended_ = false;
  uint64_t row_ = 0;
};

}  // namespace

std::unique_ptr<RecordSource> open_webdataset(const SourceOptions& options) {
  return std::make_unique<WebdatasetSource>(options);
}

}  // namespace mm::data
