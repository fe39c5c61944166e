#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace mm::text {

/// Byte-level BPE files spell every byte as one printable character: 33..126, 161..172 and 174..255
/// as the character of that number, the other 68 bytes in order as characters 256, 257, ... (a
/// blank is U+0120).
std::string bytes_to_spelling(std::string_view bytes);
/// Nothing if a character is not of the alphabet.
std::optional<std::string> spelling_to_bytes(std::string_view spelling);

}  // namespace mm::text
