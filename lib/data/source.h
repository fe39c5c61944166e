#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/data/record.h"

namespace mm::data {

enum class SourceKind { kFolder, kJsonl, kLlavaJson };
/// "folder" "jsonl" "llava-json".
std::optional<SourceKind> source_kind_from_name(std::string_view name);
std::string_view source_kind_name(SourceKind kind);
/// A directory is a folder; a file whose first character is '[' is LLaVA JSON, any other JSONL.
/// Throws IoError.
SourceKind sniff_source(const std::filesystem::path& path);

/// How much of a caption file is the caption.
enum class CaptionLines { kAll, kFirst };

struct SourceOptions {
  SourceKind kind = SourceKind::kJsonl;
  std::filesystem::path path;
  std::filesystem::path image_root;  ///< empty: the folder itself, or the one that holds the file
  CaptionLines caption_lines = CaptionLines::kAll;
  std::string question;  ///< what captions answer; empty: nothing
  /// `image_root`, or what stands for it.
  std::filesystem::path root() const;
};

/// Streams records: memory is that of one row (folder: of its sorted names). Rows come in file
/// order, pictures of a folder in the order of the bytes of their relative paths, so the order
/// never depends on locale or file system. Not thread-safe.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// Next row; nothing at the end. Bad rows are LedgerEntry items. Throws DataError if the file as
  /// a whole is broken.
  virtual std::optional<SourceItem> next() = 0;
};

/// Throws IoError if the path cannot be read, DataError if it is not of its kind.
std::unique_ptr<RecordSource> open_source(const SourceOptions& options);

/// Pictures in a directory and below, each with a .txt of the same stem beside it
/// (22.05.png: 22.05.txt). Pictures are files named .png .jpg .jpeg .webp .gif .bmp .tif .tiff
/// .avif .heic .jxl in any case; what they are is decided later, by content. Names that begin with
/// a dot are left alone. Without caption file: a skipped entry "no_caption". The key is the
/// relative path.
std::unique_ptr<RecordSource> open_folder(const SourceOptions& options);

}  // namespace mm::data
