#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/data/dataset.h"
#include "lib/data/shard_pool.h"
#include "lib/text/tokenizer.h"

namespace mm::data {

/// A picture as a file: bytes and the extension that they deserve, with its dot.
struct ExportedPicture {
  std::string bytes, extension;
};

/// A sample as people read it.
struct ExportedSample {
  std::string stem;  ///< its row, nine digits
  std::string key, text;
  std::vector<std::string> trained;  ///< texts of the trained parts
  std::vector<ExportedPicture> pictures;

  /// Suffix of picture `i`: ".png", or ".0.png" of several.
  std::string suffix(size_t i) const;
  /// key, text and trained; for a sample without picture as a conversation too.
  std::string json() const;
};

/// Reads samples without decoding their pictures. Thread-safe.
class SampleExporter {
 public:
  /// Both must outlive it.
  SampleExporter(const Dataset& set, const text::Tokenizer& tokenizer);
  /// Throws DataError for a damaged sample.
  ExportedSample read(uint64_t row) const;

 private:
  const Dataset& set_;
  const text::Tokenizer& tokenizer_;
  mutable ShardPool shards_;
};

}  // namespace mm::data
