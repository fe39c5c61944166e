#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mm {

/// `text` safe inside an HTML element or a quoted attribute: & < > " ' become entities, control
/// characters a replacement mark.
std::string html_escape(std::string_view text);

/// RFC 4648 base 64 with padding, for data: URIs.
std::string base64(std::span<const std::byte> bytes);

}  // namespace mm
