#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/data/image_path.h"
#include "lib/data/record.h"
#include "lib/data/record_from_json.h"

namespace mm::data {

/// How rows are stored. What a row of JSON means is its RowShape.
enum class SourceKind {
  kFolder,
  kJsonl,
  kLlavaJson,     ///< one JSON array
  kInternvlMeta,  ///< a JSON object that names annotation files
  kWebdataset,    ///< tar, plain, gzip or zstd; text sources take the same, and xz and bzip2
  kCsv,
  kTsv,
  kParquet,
  kIdx,      ///< pictures in an idx3 file, labels in the idx1 file beside it
  kMixture,  ///< several sources, by a TOML file or by flags
};
std::string_view source_kind_name(SourceKind kind);

/// What a name of a format means: "folder" "jsonl" "llava-json" "internvl-meta" "webdataset" "csv"
/// "tsv" "parquet" "idx" "mixture"; and by the shape of rows "llava-jsonl" "messages" "captions"
/// "pixart" "mmc4" "obelics".
struct SourceFormat {
  SourceKind kind = SourceKind::kJsonl;
  RowShape shape = RowShape::kAny;
};
std::optional<SourceFormat> source_format_from_name(std::string_view name);
std::vector<std::string> source_format_names();
/// Kind of a format that takes rows of any shape.
std::optional<SourceKind> source_kind_from_name(std::string_view name);

/// Told by content, of compressed files by what they hold: a directory is a folder, unless it has
/// no pictures of its own but tars or Parquet files; tar and Parquet by their magic bytes or names
/// like .tar.gz; '[' an array; '{' InternVL's meta file if every value of the object has an
/// `annotation`, else JSONL; a header line with a known column CSV or TSV (without one the name
/// .csv or .tsv); the zeros of an idx file; `.toml` a mixture. Of a pattern, the first file counts.
/// Throws IoError, DataError for damaged compressed files and for bytes that are no text under a
/// name that tells no kind.
SourceKind sniff_source(const std::filesystem::path& path);

/// How much of a caption file is the caption.
enum class CaptionLines { kAll, kFirst };

struct SourcePart;

struct SourceOptions {
  SourceKind kind = SourceKind::kJsonl;
  /// A file, a directory, or for files a pattern ("{00000..00017}", "{a,b}", "*", "?").
  std::filesystem::path path;
  std::filesystem::path image_root;  ///< empty: the folder itself, or the one that holds the file
  CaptionLines caption_lines = CaptionLines::kAll;
  std::string question;  ///< what captions answer; empty: nothing
  RowShape shape = RowShape::kAny;
  MissingMarks missing_marks = MissingMarks::kRefuse;
  /// Folder: directories named 10_cat count 10 times, captions are their first line, and a missing
  /// caption is the directory's name after the number.
  bool kohya = false;
  Links links = Links::kInsideRoot;  ///< of pictures
  /// Not empty: a record has a class in place of a text (Record::label). "folder": named by the
  /// folder that holds the picture; else by this column or key of a row; idx files have but one.
  std::string labels;
  std::vector<SourcePart> parts;  ///< of a mixture given by flags; empty: `path` is the TOML file
  /// `image_root`, or what stands for it.
  std::filesystem::path root() const;
  RowOptions rows() const { return {question, shape, missing_marks, labels}; }
};

/// One source of several.
struct SourcePart {
  SourceOptions options;
  double weight = 0;  ///< share of samples; 0 in all parts: one after another
  double repeat = 1;  ///< passes over it; a fraction takes that share of the rows, evenly spread
};

/// Streams records: memory is that of one row (folder: of its sorted names; tar: of one sample).
/// Rows come in file order, pictures of a folder in the order of the bytes of their relative paths,
/// so the order never depends on locale or file system. Not thread-safe.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// Next row; nothing at the end. Bad rows are LedgerEntry items. Throws DataError if the file as
  /// a whole is broken.
  virtual std::optional<SourceItem> next() = 0;
};

/// Throws IoError if the path cannot be read, DataError if it is not of its kind, UsageError for
/// options that cannot be.
std::unique_ptr<RecordSource> open_source(const SourceOptions& options);

/// The kind that reads files with this ending, compressed or not: .tar .tgz .parquet .jsonl .json
/// .csv .tsv.
std::optional<SourceKind> source_kind_of_name(std::string name);

/// Files of a directory that a source of this kind reads by their endings, sorted by bytes; none
/// for folders.
std::vector<std::filesystem::path> shard_files(const std::filesystem::path& folder,
                                               SourceKind kind);

/// Files of a source in reading order: the matches of a pattern, the shard_files of a directory,
/// else the path. Throws IoError if there is none.
std::vector<std::filesystem::path> source_files(const SourceOptions& options);

}  // namespace mm::data
