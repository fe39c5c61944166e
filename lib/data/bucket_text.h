#pragma once
#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/data/pack_options.h"
#include "lib/data/record.h"
#include "lib/text/tokenizer.h"

namespace mm::data {

/// Text of a sample of a bucketed set.
struct BucketText {
  std::vector<int32_t> ids;
  bool cut = false;  ///< the caption had more than `max_length` ids
};

/// What a text encoder is fed: the first answer of the record's conversation, between the ids that
/// the tokenizer's file puts around a whole text, without a template; too long ones lose their end,
/// not the closing ids. With labels: the id of the class, by its name, or by its number where the
/// names have no such name. Failure "no_label", "unknown_label", "bad_utf8". Thread-safe.
Result<BucketText> bucket_text(const Record& record, const text::Tokenizer& tokenizer,
                               const PackOptions& options);

}  // namespace mm::data
