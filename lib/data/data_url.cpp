#include "lib/data/data_url.h"

#include "lib/base/base64.h"

namespace mm::data {

std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view kBlanks = " \n\r\t";
  if (text.find_first_of(kBlanks) == std::string_view::npos) return mm::decode_base64(text);
  std::string digits(text);
  std::erase_if(digits, [&](char c) { return kBlanks.find(c) != std::string_view::npos; });
  return mm::decode_base64(digits);
}

std::optional<std::string> decode_data_url(std::string_view url) {
  constexpr std::string_view kScheme = "data:", kCoding = ";base64";
  if (!url.starts_with(kScheme)) return std::nullopt;
  const size_t comma = url.find(',');
  if (comma == std::string_view::npos || !url.substr(0, comma).ends_with(kCoding))
    return std::nullopt;
  return decode_base64(url.substr(comma + 1));
}

}  // namespace mm::data
