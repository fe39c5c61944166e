#pragma once
#include "lib/base/json.h"
#include "lib/base/result.h"
#include "lib/data/row_pictures.h"
#include "lib/text/render.h"

namespace mm::data {

/// Turns of a LLaVA row: [{from|role, value|content}]; `turns` may be the list as JSON text. Marks
/// of pictures are left where they stand; the renderer compares their number.
Result<text::Conversation> conversation_from_turns(const Json& turns);

/// Turns of an OpenAI or ms-swift row: [{role, content}], content a string or a list of parts
/// {type: text | image | image_url}. A part without a picture of its own and each `<image>` in a
/// user's text take the next of `pictures`; at the end all must be taken ("image_count"), unless
/// there is no mark at all. On return `pictures` stand in the order of their marks. A picture part
/// becomes the mark and, before text, a line end, as LLaVA puts it. Refused as "bad_row": pictures
/// in turns that are not the user's, tool turns, and answers with "loss": false or 0, since every
/// answer is trained on.
Result<text::Conversation> conversation_from_messages(const Json& messages, RowPictures& pictures);

/// Number of picture marks in the user's turns.
size_t count_marks(const text::Conversation& conversation);

}  // namespace mm::data
