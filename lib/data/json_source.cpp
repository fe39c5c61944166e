#include <deque>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/json_array_reader.h"
#include "lib/data/record_from_json.h"
#include "lib/data/row_documents.h"
#include "lib/data/source_openers.h"
#include "lib/data/text_stream.h"

namespace mm::data {
namespace {

/// Rows of JSON text, whatever cuts them out of the file.
class JsonRows : public RecordSource {
 public:
  explicit JsonRows(const SourceOptions& options)
      : rows_(options.rows()), root_(options.root()), links_(options.links) {}

  std::optional<SourceItem> next() override {
    if (waiting_.empty() && !read()) return std::nullopt;
    SourceItem item = std::move(waiting_.front());
    waiting_.pop_front();
    return item;
  }

 protected:
  /// Text of the next row and where it stands; nothing at the end.
  virtual std::optional<std::string> next_text(std::string& origin) = 0;

 private:
  bool read() {
    std::string origin;
    const auto text = next_text(origin);
    if (!text) return false;
    SourceItem item = record_from_text(*text, origin, row_++, rows_);
    if (auto* record = std::get_if<Record>(&item)) {
      for (LedgerEntry& entry : drop_missing_pictures(*record, root_, links_))
        waiting_.emplace_back(std::move(entry));
    }
    waiting_.push_back(std::move(item));
    return true;
  }

  const RowOptions rows_;
  const std::filesystem::path root_;
  const Links links_;
  std::deque<SourceItem> waiting_;
  uint64_t row_ = 0;
};

class JsonlSource final : public JsonRows {
 public:
  explicit JsonlSource(const SourceOptions& options) : JsonRows(options), in_(options.path) {}

 private:
  std::optional<std::string> next_text(std::string& origin) override {
    std::string line;
    do {
      if (!read_line(in_, line)) return std::nullopt;
      ++line_number_;
    } while (line.find_first_not_of(" \t") == std::string::npos);
    origin = fmt::format("{}: line {}", in_.path().string(), line_number_);
    return line;
  }

  TextStream in_;
  uint64_t line_number_ = 0;
};

class JsonArraySource final : public JsonRows {
 public:
  explicit JsonArraySource(const SourceOptions& options)
      : JsonRows(options), path_(options.path), in_(options.path) {}

 private:
  std::optional<std::string> next_text(std::string& origin) override {
    std::string element;
    if (!in_.next(element)) return std::nullopt;
    origin =
        fmt::format("{}: element {} at byte {}", path_.string(), elements_++, in_.element_offset());
    return element;
  }

  const std::filesystem::path path_;
  JsonArrayReader in_;
  uint64_t elements_ = 0;
};

}  // namespace

std::unique_ptr<RecordSource> open_jsonl(const SourceOptions& options) {
  return std::make_unique<JsonlSource>(options);
}

std::unique_ptr<RecordSource> open_json_array(const SourceOptions& options) {
  return std::make_unique<JsonArraySource>(options);
}

}  // namespace mm::data
