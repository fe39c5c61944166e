#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace mm::data {

/// RFC 4648 base 64, with or without padding; line ends and blanks are skipped. Nothing for any
/// other character or an impossible length.
std::optional<std::string> decode_base64(std::string_view text);

/// Content of "data:[type][;...];base64,..." Nothing if it is not one (percent-encoded ones are
/// not read).
std::optional<std::string> decode_data_url(std::string_view url);

}  // namespace mm::data
