#include "lib/data/length_table.h"

#include <zlib.h>

#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

#include "lib/base/error.h"

namespace mm::data {
namespace {

constexpr size_t kLongestLine = 1 << 20;

/// Lines of a file, gzip or plain.
class Lines {
 public:
  explicit Lines(const std::filesystem::path& path)
      : path_(path.string()), file_(gzopen(path.c_str(), "rb"), gzclose) {
    if (!file_) throw IoError("{}: cannot be opened", path_);
  }

  /// The next line without its end; none at the end of the file.
  bool next(std::string& line) {
    line.clear();
    while (gzgets(file_.get(), buffer_.data(), static_cast<int>(buffer_.size())) != nullptr) {
      line += buffer_.data();
      if (line.size() > kLongestLine)
        throw DataError("{}: line {} is longer than {} bytes", path_, number_ + 1, kLongestLine);
      if (line.ends_with('\n')) break;
    }
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code != Z_OK && code != Z_STREAM_END)
      throw DataError("{}: after line {}: {}", path_, number_, text);
    if (line.empty()) return false;
    ++number_;
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    return true;
  }
  uint64_t number() const { return number_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::array<char, 1 << 14> buffer_{};
  uint64_t number_ = 0;
};

void split(std::string_view line, std::vector<std::string>& fields) {
  fields.assign(1, "");
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
}

/// Where the columns that count stand; -1: nowhere.
struct Places {
  int tokens = -1, images = -1, targets = -1;
};

Places find_columns(const std::vector<std::string>& header, const std::string& path) {
  Places places;
  for (size_t i = 0; i < header.size(); ++i) {
    const std::array<std::pair<std::string_view, int*>, 3> wanted{
        {{"tokens", &places.tokens}, {"images", &places.images}, {"targets", &places.targets}}};
    for (const auto& [name, place] : wanted) {
      if (header[i] != name) continue;
      if (*place >= 0) throw DataError("{}: line 1: column {} stands there twice", path, name);
      *place = static_cast<int>(i);
    }
  }
  if (places.tokens < 0)
    throw DataError("{}: line 1: no column is named \"tokens\"; expected a CSV header", path);
  return places;
}

int32_t number_in(const std::vector<std::string>& fields, int place, std::string_view column,
                  const Lines& lines) {
  if (place < 0) return 0;
  if (static_cast<size_t>(place) >= fields.size()) {
    throw DataError("{}: line {}: {} fields, column {} is number {}", lines.path(), lines.number(),
                    fields.size(), column, place + 1);
  }
  const std::string& text = fields[static_cast<size_t>(place)];
  int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw DataError("{}: line {}: {} is \"{}\"; expected a whole number from 0 to 2147483647",
                    lines.path(), lines.number(), column, text.substr(0, 40));
  }
  return value;
}

}  // namespace

LengthTable read_lengths(const std::filesystem::path& path) {
  Lines lines(path);
  std::string line;
  if (!lines.next(line)) throw DataError("{}: empty; expected a CSV header", path.string());
  if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  std::vector<std::string> fields;
  split(line, fields);
  const Places places = find_columns(fields, lines.path());
  LengthTable table{.has_images = places.images >= 0};
  while (lines.next(line)) {
    if (line.empty()) continue;
    split(line, fields);
    table.sizes.push_back({.tokens = number_in(fields, places.tokens, "tokens", lines),
                           .images = number_in(fields, places.images, "images", lines),
                           .targets = number_in(fields, places.targets, "targets", lines)});
  }
  return table;
}

uint64_t cut_lengths(std::vector<SampleSize>& sizes, int32_t tokens) {
  uint64_t cut = 0;
  for (SampleSize& size : sizes) {
    if (size.tokens <= tokens) continue;
    size.tokens = tokens;
    ++cut;
  }
  return cut;
}

}  // namespace mm::data
