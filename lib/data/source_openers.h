#pragma once
#include <cstdint>
#include <memory>
#include <variant>

#include "lib/data/source.h"

namespace mm::data {

// One for each kind, for open_source. `options.path` is one existing file or directory.

/// One object a line; blank lines mean nothing.
std::unique_ptr<RecordSource> open_jsonl(const SourceOptions& options);
/// One array of objects.
std::unique_ptr<RecordSource> open_json_array(const SourceOptions& options);
/// RFC 4180 with a header line.
std::unique_ptr<RecordSource> open_csv(const SourceOptions& options);

/// metadata.jsonl or metadata.csv in the directory: its rows, whose `file_name` is relative to it.
/// Else pictures in the directory and below, each with a .txt or .caption of the same stem beside
/// it (22.05.png: 22.05.txt). Pictures are files named .png .jpg .jpeg .webp .gif .bmp .tif .tiff
/// .avif .heic .jxl in any case; what they are is decided later, by content. Names that begin with
/// a dot are left alone. Without caption file: a skipped entry "no_caption". Of pictures that share
/// a stem the first is taken, the others are bad ("stem_collision"). The key is the relative path.
std::unique_ptr<RecordSource> open_folder(const SourceOptions& options);

/// A tar of samples: members whose path agrees up to the first dot of the last part.
std::unique_ptr<RecordSource> open_webdataset(const SourceOptions& options);

/// Pictures of an idx3 file, labels of the idx1 file of the same name beside it (labels_beside).
/// The key is the file's name and the place of the picture; the label is the number's digits, and
/// the caption too where no labels are asked for. Throws DataError when counts differ.
std::unique_ptr<RecordSource> open_idx(const SourceOptions& options);

/// By libmm_parquet.so, which is loaded at the first call. Throws UsageError saying how to get it.
std::unique_ptr<RecordSource> open_parquet(const SourceOptions& options);

/// Parts of an InternVL meta file, in its order. Throws DataError naming the entry at fault.
std::vector<SourcePart> internvl_parts(const SourceOptions& options);

/// Parts of a mixture's TOML file. Throws UsageError with file, line and column.
std::vector<SourcePart> mixture_parts(const SourceOptions& options);

/// Whether parts are sources of their own, which records name, or the files of one source.
enum class PartNames { kSources, kFiles };

/// Parts one after another, or by weight (see docs/formats.md, Mixtures). Throws UsageError if only
/// some have a weight.
std::unique_ptr<RecordSource> open_parts(std::vector<SourcePart> parts,
                                         PartNames names = PartNames::kSources);

/// Gives an item its place among all rows.
inline void renumber(SourceItem& item, uint64_t row) {
  std::visit([row](auto& any) { any.row = row; }, item);
}

}  // namespace mm::data
