#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/class_labels.h"
#include "lib/data/folder_listing.h"
#include "lib/data/record_from_json.h"
#include "lib/data/source_openers.h"
#include "lib/text/utf8.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxCaptionBytes = uint64_t{1} << 20;
constexpr std::array kCaptionNames = {".txt", ".caption"};

std::string caption_from(std::string_view content, CaptionLines lines) {
  if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);
  if (lines == CaptionLines::kFirst) content = content.substr(0, content.find_first_of("\r\n"));
  std::string caption;
  for (const char c : text::strip(content)) {
    if (c != '\r') caption.push_back(c);
  }
  return caption;
}

std::string stem_of(const std::string& name) { return fs::path(name).replace_extension().string(); }

/// The first of the names that each stem has.
std::unordered_map<std::string, std::string> first_of_stems(const std::vector<std::string>& names) {
  std::unordered_map<std::string, std::string> first;
  for (const std::string& name : names) first.emplace(stem_of(name), name);
  return first;
}

class FolderSource final : public RecordSource {
 public:
  explicit FolderSource(SourceOptions options)
      : options_(std::move(options)),
        names_(list_pictures(options_.path)),
        first_of_stem_(first_of_stems(names_)) {
    if (options_.kohya) options_.caption_lines = CaptionLines::kFirst;
  }

  std::optional<SourceItem> next() override {
    if (copies_left_ > 0) {
      --copies_left_;
      ++last_.repeat;
      last_.row = row_++;
      return last_;
    }
    if (at_ == names_.size()) return std::nullopt;
    SourceItem item = read(names_[at_++], row_++);
    if (const auto* record = std::get_if<Record>(&item); record != nullptr && options_.kohya) {
      last_ = *record;
      copies_left_ = folder_of(record->key).repeats - 1;
    }
    return item;
  }

 private:
  KohyaName folder_of(const std::string& name) const {
    const fs::path parent = fs::path(name).parent_path();
    const fs::path absolute = fs::absolute(options_.path).lexically_normal();
    const fs::path root = absolute.has_filename() ? absolute : absolute.parent_path();
    return kohya_name((parent.empty() ? root : parent).filename().string());
  }

  /// Text of the caption file, or what stands for it.
  Result<std::string> caption_of(const std::string& name) const {
    for (const char* extension : kCaptionNames) {
      const fs::path file = (options_.path / name).replace_extension(extension);
      if (!fs::is_regular_file(file)) continue;
      if (fs::file_size(file) > kMaxCaptionBytes)
        return Failure{"bad_row", "the caption file is over 1 MiB"};
      std::string caption = caption_from(read_file(file), options_.caption_lines);
      if (!text::is_valid_utf8(caption)) return Failure{"bad_utf8", "the caption is not UTF-8"};
      if (caption.empty()) return Failure{"empty_caption", "the caption is empty"};
      return caption;
    }
    if (options_.kohya) return folder_of(name).words;
    const auto txt = fs::path(name).replace_extension(".txt").filename().string();
    return Failure{"no_caption", fmt::format("no {}", txt)};
  }

  /// A folder has but one kind of label: the name of the folder that holds the picture.
  SourceItem labelled(const std::string& name, uint64_t row) const {
    Record record{row, name, {name}, captioned({}, 1, {})};
    record.label = folder_label(name);
    return record;
  }

  SourceItem read(const std::string& name, uint64_t row) const {
    const auto refuse = [&](const Failure& failure) {
      const std::string key = text::replace_invalid_utf8(name);
      return LedgerEntry{
          row, key, key, failure.kind, failure.message, failure.kind == "no_caption"};
    };
    if (!text::is_valid_utf8(name)) return refuse({"bad_name", "the file name is not UTF-8"});
    if (!options_.labels.empty()) return labelled(name, row);
    auto caption = caption_of(name);
    if (!caption) return refuse(caption.failure());
    const std::string& first = first_of_stem_.at(stem_of(name));
    if (first != name) {
      return refuse({"stem_collision", fmt::format("{} has the same stem and took the caption; "
                                                   "rename one of them",
                                                   text::replace_invalid_utf8(first))});
    }
    return Record{row, name, {name}, captioned(std::move(*caption), 1, options_.question)};
  }

  SourceOptions options_;
  const std::vector<std::string> names_;
  const std::unordered_map<std::string, std::string> first_of_stem_;
  size_t at_ = 0;
  uint64_t row_ = 0;
  Record last_;
  uint32_t copies_left_ = 0;
};

}  // namespace

std::unique_ptr<RecordSource> open_folder(const SourceOptions& options) {
  SourceOptions table = options;
  table.image_root = options.root();
  table.path = options.path / "metadata.jsonl";
  table.kind = SourceKind::kJsonl;
  if (fs::is_regular_file(table.path)) return open_jsonl(table);
  table.path = options.path / "metadata.csv";
  table.kind = SourceKind::kCsv;
  if (fs::is_regular_file(table.path)) return open_csv(table);
  return std::make_unique<FolderSource>(options);
}

}  // namespace mm::data
