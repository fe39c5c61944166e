#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace mm {

/// RFC 4648 base 64, with or without padding. Nothing for other characters (white space included),
/// a length that no text has, or unused bits that are not 0.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace mm
