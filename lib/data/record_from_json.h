#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/json.h"
#include "lib/data/record.h"

namespace mm::data {

/// What a row of JSON is, told by its keys.
enum class RowShape {
  kAny,            ///< as an option: whatever each row is
  kConversations,  ///< LLaVA: `conversations`
  kMessages,       ///< OpenAI, ms-swift: `messages`
  kCaption,        ///< a caption or text, with or without pictures
  kMmc4,           ///< `text_list` and `image_info`
  kObelics,        ///< `texts` and `images`, lists
};

/// What a conversation without any mark, but with pictures, means.
enum class MissingMarks {
  kRefuse,   ///< a bad row: "image_count"
  kPrepend,  ///< the pictures come first in the first user turn
};

struct RowOptions {
  std::string question;  ///< what a caption answers (it follows the picture marks)
  RowShape shape = RowShape::kAny;
  MissingMarks missing_marks = MissingMarks::kRefuse;
  std::string labels =
      {};  ///< see SourceOptions::labels; then captions and the like are passed over
};

/// Reads one row of JSON (docs/formats.md, Sources):
/// - pictures: see pictures_of_row; absent, null or "" means text only;
/// - text: conversations, messages, a document, or a caption (of a list of captions the first that
///   is not empty);
/// - `id` or `key`: a string or whole number, may be missing or repeated.
/// Anything else is a LedgerEntry that says what was found.
SourceItem record_from_json(const Json& row, uint64_t row_number, const RowOptions& options = {});

/// Parses the text of a row first; text that is not JSON is a LedgerEntry "bad_json".
SourceItem record_from_text(std::string_view text, std::string_view origin, uint64_t row_number,
                            const RowOptions& options = {});

/// Caption of `images` pictures, as the answer to `question` (may be empty).
text::Conversation captioned(std::string caption, size_t images, const std::string& question);

/// Told by the keys of the row; kCaption if nothing else fits.
RowShape shape_of(const Json& row);

}  // namespace mm::data
