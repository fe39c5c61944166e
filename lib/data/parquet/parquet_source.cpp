#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>

#include <deque>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/csv_reader.h"
#include "lib/data/parquet/arrow_json.h"
#include "lib/data/parquet_module.h"
#include "lib/data/row_documents.h"

namespace mm::data {
namespace {

/// Rows that are decoded at a time: pictures in cells make rows large.
constexpr int64_t kBatchRows = 16;

/// Name that record_from_json knows for a column; empty for others.
std::string column_name(const std::string& name, const std::string& labels) {
  if (name == labels) return name;
  for (const std::string_view known : {"texts", "text_list", "image_info"}) {
    if (name == known) return name;
  }
  return known_column(name);
}

/// One row group after another, in batches; a group that cannot be read is one entry.
class ParquetSource final : public RecordSource {
 public:
  explicit ParquetSource(const SourceOptions& options)
      : path_(options.path.string()),
        rows_(options.rows()),
        root_(options.root()),
        links_(options.links) {
    open();
  }

  std::optional<SourceItem> next() override {
    while (waiting_.empty()) {
      if (batch_ != nullptr && at_ < batch_->num_rows()) {
        read_row(at_++);
      } else if (!next_batch()) {
        return std::nullopt;
      }
    }
    SourceItem item = std::move(waiting_.front());
    waiting_.pop_front();
    return item;
  }

 private:
  void open() {
    try {
      auto file = arrow::io::ReadableFile::Open(path_);
      check(file.status());
      parquet::ReaderProperties properties;
      properties.enable_buffered_stream();
      parquet::arrow::FileReaderBuilder builder;
      check(builder.Open(*file, properties));
      parquet::ArrowReaderProperties reading(/*use_threads=*/false);
      reading.set_batch_size(kBatchRows);
      reading.set_pre_buffer(false);
      builder.properties(reading);
      auto reader = builder.Build();
      check(reader.status());
      reader_ = std::move(*reader);
      choose_columns();
    } catch (const parquet::ParquetException& error) {
      throw DataError("{}: no Parquet file that can be read: {}", path_, error.what());
    }
  }

  void check(const arrow::Status& status) const {
    if (status.ok()) return;
    throw DataError("{}: no Parquet file that can be read: {}", path_, status.message());
  }

  void choose_columns() {
    const auto* schema = reader_->parquet_reader()->metadata()->schema();
    bool has_text = false;
    for (int i = 0; i < schema->num_columns(); ++i) {
      const std::string name = column_name(schema->GetColumnRoot(i)->name(), rows_.labels);
      if (name.empty()) continue;
      columns_.push_back(i);
      has_text = has_text || is_table_header(name, ',') || name == "texts" || name == "text_list";
    }
    if (!has_text && rows_.labels.empty())
      throw DataError(
          "{}: no column with text; known: caption, text, prompt, conversations, "
          "messages, texts, text_list",
          path_);
  }

  /// False at the end of the file.
  bool next_batch() {
    batch_ = nullptr;
    at_ = 0;
    if (batches_ == nullptr) {
      if (group_ == reader_->num_row_groups()) return false;
      auto batches = guarded([&] { return reader_->GetRecordBatchReader({group_}, columns_); });
      ++group_;
      if (batches == nullptr) return true;
      batches_ = std::move(batches);
    }
    batch_ = guarded([&] { return batches_->Next(); });
    if (batch_ == nullptr) batches_ = nullptr;
    return true;
  }

  /// The value, or null and an entry about the row group.
  template <typename Body>
  auto guarded(const Body& body) -> std::decay_t<decltype(*body())> {
    std::string message;
    try {
      auto value = body();
      if (value.ok()) return std::move(*value);
      message = value.status().message();
    } catch (const std::exception& error) {
      message = error.what();
    }
    waiting_.emplace_back(
        LedgerEntry{row_++,
                    "row group",
                    {},
                    "bad_parquet",
                    fmt::format("{}: rest of row group {} is lost: {}", path_, group_, message)});
    return nullptr;
  }

  void read_row(int64_t i) {
    const uint64_t row = row_++;
    try {
      Json json = Json::object();
      for (int c = 0; c < batch_->num_columns(); ++c)
        json[column_name(batch_->schema()->field(c)->name(), rows_.labels)] =
            arrow_to_json(*batch_->column(c), i);
      SourceItem item = record_from_json(json, row, rows_);
      if (auto* record = std::get_if<Record>(&item)) {
        for (LedgerEntry& entry : drop_missing_pictures(*record, root_, links_))
          waiting_.emplace_back(std::move(entry));
      }
      waiting_.push_back(std::move(item));
    } catch (const DataError& error) {
      waiting_.emplace_back(
          LedgerEntry{row, fmt::format("row {}", row), {}, "bad_row", error.what()});
    }
  }

  const std::string path_;
  const RowOptions rows_;
  const std::filesystem::path root_;
  const Links links_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<int> columns_;
  std::shared_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::deque<SourceItem> waiting_;
  int group_ = 0;
  int64_t at_ = 0;
  uint64_t row_ = 0;
};

}  // namespace
}  // namespace mm::data

extern "C" {

const char* mm_parquet_version = mm::data::kParquetVersionText;

mm::data::RecordSource* mm_open_parquet(const mm::data::SourceOptions& options) {
  return std::make_unique<mm::data::ParquetSource>(options).release();
}

}  // extern "C"
