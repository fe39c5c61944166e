#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "lib/data/bad_sample_ledger.h"
#include "lib/text/render.h"

namespace mm::data {

/// One row of a source, not yet checked against pictures and tokenizer.
struct Record {
  uint64_t row = 0;  ///< position in the source, from 0; rows that are refused count
  std::string key;   ///< recorded name, UTF-8: id, else first picture's path, else "row N"
  std::vector<std::string> images;  ///< paths as recorded, below the image root
  text::Conversation conversation;
};

/// What a source yields: a record, or why a row gives none.
using SourceItem = std::variant<Record, LedgerEntry>;

}  // namespace mm::data
