#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace mm::data {

/// mm::decode_base64 of text that may hold line ends and blanks, which are skipped.
std::optional<std::string> decode_base64(std::string_view text);

/// Content of "data:[type][;...];base64,..." Nothing if it is not one (percent-encoded ones are
/// not read).
std::optional<std::string> decode_data_url(std::string_view url);

}  // namespace mm::data
