#include "lib/data/source.h"

#include "lib/base/error.h"
#include "lib/data/json_array_reader.h"
#include "lib/data/record_from_json.h"
#include "lib/data/text_stream.h"

namespace mm::data {
namespace {

class JsonlSource final : public RecordSource {
 public:
  explicit JsonlSource(const SourceOptions& options)
      : in_(options.path), question_(options.question) {}

  std::optional<SourceItem> next() override {
    std::string line;
    do {
      if (!read_line(in_, line)) return std::nullopt;
      ++line_number_;
    } while (line.find_first_not_of(" \t") == std::string::npos);
    return record_from_text(line, fmt::format("{}: line {}", in_.path().string(), line_number_),
                            row_++, question_);
  }

 private:
  TextStream in_;
  const std::string question_;
  uint64_t row_ = 0, line_number_ = 0;
};

class LlavaJsonSource final : public RecordSource {
 public:
  explicit LlavaJsonSource(const SourceOptions& options)
      : path_(options.path), in_(options.path), question_(options.question) {}

  std::optional<SourceItem> next() override {
    std::string element;
    if (!in_.next(element)) return std::nullopt;
    const auto origin =
        fmt::format("{}: element {} at byte {}", path_.string(), row_, in_.element_offset());
    return record_from_text(element, origin, row_++, question_);
  }

 private:
  const std::filesystem::path path_;
  JsonArrayReader in_;
  const std::string question_;
  uint64_t row_ = 0;
};

}  // namespace

std::optional<SourceKind> source_kind_from_name(std::string_view name) {
  for (const auto kind : {SourceKind::kFolder, SourceKind::kJsonl, SourceKind::kLlavaJson}) {
    if (source_kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string_view source_kind_name(SourceKind kind) {
  switch (kind) {
    case SourceKind::kFolder:
      return "folder";
    case SourceKind::kJsonl:
      return "jsonl";
    case SourceKind::kLlavaJson:
      return "llava-json";
  }
  return "";
}

SourceKind sniff_source(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return SourceKind::kFolder;
  TextStream in(path);
  while (in.peek() == ' ' || in.peek() == '\n' || in.peek() == '\r' || in.peek() == '\t') in.get();
  return in.peek() == '[' ? SourceKind::kLlavaJson : SourceKind::kJsonl;
}

std::filesystem::path SourceOptions::root() const {
  if (!image_root.empty()) return image_root;
  if (kind == SourceKind::kFolder) return path;
  const auto parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

std::unique_ptr<RecordSource> open_source(const SourceOptions& options) {
  switch (options.kind) {
    case SourceKind::kFolder:
      return open_folder(options);
    case SourceKind::kJsonl:
      return std::make_unique<JsonlSource>(options);
    case SourceKind::kLlavaJson:
      return std::make_unique<LlavaJsonSource>(options);
  }
  throw InternalError("source kind {}", static_cast<int>(options.kind));
}

}  // namespace mm::data
