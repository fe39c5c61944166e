#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "lib/data/dataset.h"
#include "lib/text/tokenizer.h"

namespace mm::data {

enum class ExportKind { kWebdataset, kFolder };
/// "webdataset" "folder".
std::optional<ExportKind> export_kind_from_name(std::string_view name);

struct ExportOptions {
  ExportKind kind = ExportKind::kWebdataset;
  std::filesystem::path output;               ///< directory; must not exist
  uint64_t tar_bytes = uint64_t{1} << 30;     ///< a tar is ended when it reaches this
  std::function<void(int64_t)> on_samples{};  ///< progress
};

struct ExportResult {
  uint64_t samples = 0, pictures = 0, files = 0;
};

/// Writes every sample of a packed set in the order of its rows:
/// - webdataset: 00000.tar ..., members 000000000.{png,jpg,webp} (several: .0.png, .1.png), .txt
///   and .json; of a sample without picture .json alone, as a conversation;
/// - folder: images/000000000.png ..., beside a single picture its .txt, and metadata.jsonl.
/// Pictures are as stored: JPEG byte for byte, raw pixels as PNG. Text is what the tokens decode
/// to, without picture marks; `trained` lists the trained parts. Equal sets give equal bytes. The
/// output appears by one rename (law 4). Memory: one sample. Throws UsageError if the output
/// exists, DataError for a damaged sample, IoError.
ExportResult export_dataset(const Dataset& set, const text::Tokenizer& tokenizer,
                            const ExportOptions& options);

}  // namespace mm::data
