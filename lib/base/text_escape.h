#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace mm {

/// Text from outside (file names, captions, parser messages) made safe for one line of a terminal
/// or log: valid UTF-8 stays, control characters and invalid bytes become \xNN (line feed \n, tab
/// \t). Longer than `max_bytes` of output: cut, with
/// "..." at the end.
std::string escape_text(std::string_view text, size_t max_bytes = 200);

/// Length in bytes (1 to 4) of the valid UTF-8 character at the start of `text`; 0 if it is invalid
/// (overlong, surrogate, above U+10FFFF, cut off) or `text` is empty.
size_t utf8_length(std::string_view text);

}  // namespace mm
