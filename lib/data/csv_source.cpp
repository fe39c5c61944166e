#include <algorithm>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/class_labels.h"
#include "lib/data/csv_reader.h"
#include "lib/data/record_from_json.h"
#include "lib/data/row_fields.h"
#include "lib/data/source_openers.h"
#include "lib/text/utf8.h"

namespace mm::data {
namespace {

constexpr std::string_view kNull = "\\N";

/// Rows of a table as rows of JSON: columns that sources know, cells that are not empty.
class CsvSource final : public RecordSource {
 public:
  explicit CsvSource(const SourceOptions& options)
      : path_(options.path),
        rows_(options.rows()),
        in_(options.path, options.kind == SourceKind::kTsv ? '\t' : ',') {
    read_header();
  }

  std::optional<SourceItem> next() override {
    const auto row = in_.next();
    if (!row) return std::nullopt;
    const uint64_t number = row_++;
    const auto refuse = [&](std::string_view kind, const std::string& message) {
      return LedgerEntry{number,
                         fmt::format("row {}", number),
                         {},
                         std::string(kind),
                         fmt::format("{}: line {}: {}", path_.string(), row->line, message)};
    };
    if (!row->problem.empty()) return refuse("bad_csv", row->problem);
    if (row->fields.size() != columns_.size()) {
      return refuse("bad_csv", fmt::format("has {} fields, the header has {}", row->fields.size(),
                                           columns_.size()));
    }
    const Json json = to_json(*row);
    for (const Json& cell : json) {
      if (!text::is_valid_utf8(cell.get_ref<const std::string&>()))
        return refuse("bad_utf8", "is not UTF-8; convert the file");
    }
    if (has_images_ && find_field(json, image_columns()) == nullptr)
      return refuse("bad_row", "names no picture");
    return record_from_json(json, number, rows_);
  }

 private:
  void read_header() {
    const auto header = in_.next();
    if (!header) throw DataError("{}: empty; expected a header line", path_.string());
    bool has_text = false;
    for (const std::string& name : header->fields) {
      const std::string known = name == rows_.labels ? name : known_column(name);
      if (!known.empty() && std::find(columns_.begin(), columns_.end(), known) != columns_.end())
        throw DataError("{}: column \"{}\" is there twice", path_.string(), name);
      columns_.push_back(known);
      has_text =
          has_text || is_table_header(known, ',') || (!known.empty() && known == rows_.labels);
      const auto images = image_columns();
      has_images_ = has_images_ || std::find(images.begin(), images.end(), known) != images.end();
    }
    if (has_text || (has_images_ && rows_.labels == kFolderLabels)) return;
    if (!rows_.labels.empty())
      throw DataError("{}: no column \"{}\" in its header ({})", path_.string(), rows_.labels,
                      fmt::join(header->fields, ", "));
    throw DataError(
        "{}: no column with text in its header ({}); known: caption, text, prompt, "
        "conversations, messages",
        path_.string(), fmt::join(header->fields, ", "));
  }

  Json to_json(const CsvRow& row) const {
    Json json = Json::object();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].empty() && !row.fields[i].empty() && row.fields[i] != kNull)
        json[columns_[i]] = row.fields[i];
    }
    return json;
  }

  const std::filesystem::path path_;
  const RowOptions rows_;
  CsvReader in_;
  std::vector<std::string> columns_;  ///< "": not for us
  bool has_images_ = false;
  uint64_t row_ = 0;
};

}  // namespace

std::unique_ptr<RecordSource> open_csv(const SourceOptions& options) {
  return std::make_unique<CsvSource>(options);
}

}  // namespace mm::data
