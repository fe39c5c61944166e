#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/json.h"
#include "lib/data/record.h"

namespace mm::data {

/// Reads one row of a JSONL or LLaVA file:
/// - `image` or `images`: a path, a list of paths; absent, null or "" means text only;
/// - `conversations`: [{from|role, value|content}], roles human user gpt assistant system; or
/// `caption` or `text`: a string;
/// - `id`: a string or whole number, may be missing or repeated.
/// `question` is what a caption answers (it follows the picture marks). Anything else is a
/// LedgerEntry that says what was found.
SourceItem record_from_json(const Json& row, uint64_t row_number, const std::string& question = {});

/// Parses the text of a row first; text that is not JSON is a LedgerEntry "bad_json".
SourceItem record_from_text(std::string_view text, std::string_view origin, uint64_t row_number,
                            const std::string& question = {});

/// Caption of `images` pictures, as the answer to `question` (may be empty).
text::Conversation captioned(std::string caption, size_t images, const std::string& question);

}  // namespace mm::data
