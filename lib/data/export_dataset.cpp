#include "lib/data/export_dataset.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/data/export_sample.h"
#include "lib/data/tar_file.h"

namespace mm::data {
namespace {

namespace fs = std::filesystem;

/// Where samples go; `finish` makes all of it durable.
class ExportTarget {
 public:
  virtual ~ExportTarget() = default;
  virtual void add(const ExportedSample& sample) = 0;
  /// Number of files.
  virtual uint64_t finish() = 0;
};

class TarTarget final : public ExportTarget {
 public:
  TarTarget(fs::path directory, uint64_t tar_bytes)
      : directory_(std::move(directory)), tar_bytes_(tar_bytes) {}

  void add(const ExportedSample& sample) override {
    if (tar_ == nullptr)
      tar_ = std::make_unique<TarFile>(directory_ / fmt::format("{:05}.tar", tars_++));
    for (size_t i = 0; i < sample.pictures.size(); ++i)
      tar_->add(sample.stem + sample.suffix(i), sample.pictures[i].bytes);
    if (!sample.pictures.empty()) tar_->add(sample.stem + ".txt", sample.text);
    tar_->add(sample.stem + ".json", sample.json());
    if (tar_->content_bytes() >= tar_bytes_) end_tar();
  }
  uint64_t finish() override {
    if (tar_ != nullptr) end_tar();
    return tars_;
  }

 private:
  void end_tar() {
    tar_->finish();
    tar_.reset();
  }
  const fs::path directory_;
  const uint64_t tar_bytes_;
  std::unique_ptr<TarFile> tar_;
  uint64_t tars_ = 0;
};

class FolderTarget final : public ExportTarget {
 public:
  explicit FolderTarget(fs::path directory)
      : directory_(std::move(directory)), rows_(File::create(directory_ / "metadata.jsonl")) {
    fs::create_directories(directory_ / "images");
  }

  void add(const ExportedSample& sample) override {
    Json row = {{"id", sample.key}};
    Json names = Json::array();
    for (size_t i = 0; i < sample.pictures.size(); ++i) {
      const std::string name = "images/" + sample.stem + sample.suffix(i);
      write(name, sample.pictures[i].bytes);
      names.push_back(name);
    }
    if (names.size() == 1) {
      row["file_name"] = names[0];
      write("images/" + sample.stem + ".txt", sample.text);
    } else if (names.size() > 1) {
      row["images"] = std::move(names);
    }
    row["text"] = sample.text;
    row["trained"] = sample.trained;
    rows_.write(row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  uint64_t finish() override {
    rows_.sync();
    fsync_directory(directory_ / "images");
    return files_ + 1;
  }

 private:
  void write(const std::string& name, std::string_view content) {
    File file = File::create(directory_ / name);
    file.write(content);
    file.sync();
    ++files_;
  }
  const fs::path directory_;
  File rows_;
  uint64_t files_ = 0;
};

std::unique_ptr<ExportTarget> open_target(const ExportOptions& options, const fs::path& partial) {
  if (options.kind == ExportKind::kFolder) return std::make_unique<FolderTarget>(partial);
  return std::make_unique<TarTarget>(partial, options.tar_bytes);
}

}  // namespace

std::optional<ExportKind> export_kind_from_name(std::string_view name) {
  if (name == "webdataset") return ExportKind::kWebdataset;
  if (name == "folder") return ExportKind::kFolder;
  return std::nullopt;
}

ExportResult export_dataset(const Dataset& set, const text::Tokenizer& tokenizer,
                            const ExportOptions& options) {
  const fs::path normal = fs::absolute(options.output).lexically_normal();
  const fs::path output = normal.has_filename() ? normal : normal.parent_path();
  if (fs::exists(output))
    throw UsageError("{}: exists; give another --out, or remove it", output.string());
  const fs::path partial = output.string() + ".partial";
  fs::remove_all(partial);
  fs::create_directories(partial);
  const auto target = open_target(options, partial);
  const SampleExporter exporter(set, tokenizer);
  ExportResult result;
  for (uint64_t row = 0; row < set.rows(); ++row) {
    const ExportedSample sample = exporter.read(row);
    target->add(sample);
    ++result.samples;
    result.pictures += sample.pictures.size();
    if (options.on_samples) options.on_samples(1);
  }
  result.files = target->finish();
  fsync_directory(partial);
  std::error_code error;
  fs::rename(partial, output, error);
  if (error) throw IoError("{}: cannot rename into place: {}", output.string(), error.message());
  fsync_directory(output.parent_path());
  return result;
}

}  // namespace mm::data
