#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lib/data/bad_sample_ledger.h"
#include "lib/text/render.h"

namespace mm::data {

/// Bytes of a picture that came with its row (a tar member, a Parquet cell, a data URL).
using CarriedPicture = std::shared_ptr<const std::string>;

/// One row of a source, not yet checked against pictures and tokenizer.
struct Record {
  uint64_t row = 0;  ///< position in the source, from 0; rows that are refused count
  std::string key;   ///< recorded name, UTF-8: id, else first picture's path, else "row N"
  std::vector<std::string> images;  ///< paths as recorded, below the image root
  text::Conversation conversation;
  /// Content of images[i] where the source itself carries it; null, or past the end: a file.
  std::vector<CarriedPicture> carried;
  int orientation = 1;  ///< EXIF's 1..8, of pictures whose files carry none (img2dataset's json)
  std::string root;     ///< image root of this record; empty: that of the source options
  std::string label;    ///< name of its class, where labels were asked for
  uint32_t source = 0;  ///< which part of a mixture it came from
  uint32_t repeat = 0;  ///< which copy of a row that was asked for more than once, from 0

  /// Content of images[i], or null.
  const std::string* content(size_t i) const {
    return i < carried.size() ? carried[i].get() : nullptr;
  }
};

/// What a source yields: a record, or why a row gives none.
using SourceItem = std::variant<Record, LedgerEntry>;

}  // namespace mm::data
