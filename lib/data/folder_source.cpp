#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/record_from_json.h"
#include "lib/data/source.h"
#include "lib/text/utf8.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxCaptionBytes = uint64_t{1} << 20;
constexpr std::array<std::string_view, 11> kPictureNames = {
    ".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".jxl"};

bool is_picture_name(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kPictureNames.begin(), kPictureNames.end(), extension) != kPictureNames.end();
}

/// Relative paths of all pictures, sorted by bytes.
std::vector<std::string> list_pictures(const fs::path& root) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator it(root, error);
  if (error) throw IoError("{}: cannot list: {}", root.string(), error.message());
  for (; it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) {
      if (it->is_directory()) it.disable_recursion_pending();
      continue;
    }
    if (is_picture_name(it->path()) && it->is_regular_file()) {
      names.push_back(it->path().lexically_relative(root).string());
    }
  }
  if (error) throw IoError("{}: cannot list: {}", root.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::string caption_from(std::string_view content, CaptionLines lines) {
  if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);
  if (lines == CaptionLines::kFirst) content = content.substr(0, content.find_first_of("\r\n"));
  std::string caption;
  for (const char c : text::strip(content)) {
    if (c != '\r') caption.push_back(c);
  }
  return caption;
}

class FolderSource final : public RecordSource {
 public:
  explicit FolderSource(SourceOptions options)
      : options_(std::move(options)), names_(list_pictures(options_.path)) {}

  std::optional<SourceItem> next() override {
    if (row_ == names_.size()) return std::nullopt;
    const uint64_t row = row_++;
    const std::string& name = names_[row];
    const auto refuse = [&](std::string_view kind, std::string message, bool skipped = false) {
      const std::string key = text::replace_invalid_utf8(name);
      return LedgerEntry{row, key, key, std::string(kind), std::move(message), skipped};
    };
    if (!text::is_valid_utf8(name)) return refuse("bad_name", "the file name is not UTF-8");
    fs::path caption_file = options_.path / name;
    caption_file.replace_extension(".txt");
    if (!fs::is_regular_file(caption_file)) {
      return refuse("no_caption", fmt::format("no {}", caption_file.filename().string()), true);
    }
    if (fs::file_size(caption_file) > kMaxCaptionBytes)
      return refuse("bad_row", "the caption file is over 1 MiB");
    std::string caption = caption_from(read_file(caption_file), options_.caption_lines);
    if (!text::is_valid_utf8(caption)) return refuse("bad_utf8", "the caption is not UTF-8");
    if (caption.empty()) return refuse("empty_caption", "the caption is empty");
    return Record{row, name, {name}, captioned(std::move(caption), 1, options_.question)};
  }

 private:
  const SourceOptions options_;
  const std::vector<std::string> names_;
  uint64_t row_ = 0;
};

}  // namespace

std::unique_ptr<RecordSource> open_folder(const SourceOptions& options) {
  return std::make_unique<FolderSource>(options);
}

}  // namespace mm::data
