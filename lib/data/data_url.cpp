#include "lib/data/data_url.h"

#include <array>
#include <cstdint>

namespace mm::data {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int kNone = -1;

constexpr std::array<int, 256> make_values() {
  std::array<int, 256> values{};
  values.fill(kNone);
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int>(i);
  return values;
}
constexpr std::array<int, 256> kValues = make_values();

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  size_t digits = 0, padding = 0;
  for (const char c : text) {
    if (is_blank(c)) continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int value = kValues[static_cast<unsigned char>(c)];
    if (value == kNone || padding > 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (++digits % 4 != 1) out.push_back(static_cast<char>(bits >> ((8 - digits % 4 * 2) % 8)));
  }
  if (digits % 4 == 1 || padding > 2 || (padding > 0 && (digits + padding) % 4 != 0))
    return std::nullopt;
  return out;
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
