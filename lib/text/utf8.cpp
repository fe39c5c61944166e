#include "lib/text/utf8.h"

namespace mm::text {
namespace {

uint32_t byte_at(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

// Start of the code point that ends before `end`.
size_t previous(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && end - at < 4 && (byte_at(text, at) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t at) {
  const uint32_t lead = byte_at(text, at);
  if (lead < 0x80) return {lead, 1, true};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || length > text.size() - at) return {};
  uint32_t value = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const uint32_t next = byte_at(text, at + i);
    if ((next & 0xC0) != 0x80) return {};
    value = value << 6 | (next & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
    return {};
  return {value, length, true};
}

void append_utf8(char32_t value, std::string& out) {
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6);
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (!c.valid) return false;
    at += c.length_bytes;
  }
  return true;
}

size_t broken_length(std::string_view text, size_t at) {
  const uint32_t lead = byte_at(text, at);
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 1;
  size_t end = at + 1;
  for (; end < text.size() && end < at + length; ++end) {
    // The second byte's range keeps out overlong forms, surrogates and what lies above 10FFFF.
    const bool second = end == at + 1;
    const uint32_t low = second && lead == 0xE0 ? 0xA0 : second && lead == 0xF0 ? 0x90 : 0x80;
    const uint32_t high = second && lead == 0xED ? 0x9F : second && lead == 0xF4 ? 0x8F : 0xBF;
    if (byte_at(text, end) < low || byte_at(text, end) > high) break;
  }
  return end - at;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    const size_t length = c.valid ? c.length_bytes : broken_length(text, at);
    if (c.valid) {
      out.append(text.substr(at, length));
    } else {
      append_utf8(0xFFFD, out);
    }
    at += length;
  }
  return out;
}

std::string_view strip(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = decode_utf8(text, 0);
    if (!c.valid || !is_space(c.value)) break;
    text.remove_prefix(c.length_bytes);
  }
  while (!text.empty()) {
    const size_t at = previous(text, text.size());
    const CodePoint c = decode_utf8(text, at);
    if (!c.valid || !is_space(c.value) || at + c.length_bytes != text.size()) break;
    text.remove_suffix(text.size() - at);
  }
  return text;
}

}  // namespace mm::text
