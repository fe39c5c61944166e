#include "lib/ckpt/json_scanner.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"

namespace mm::ckpt {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, uint32_t code) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const size_t length = utf8_length(text.substr(at, 4));
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string printable_name(std::string_view name) { return "'" + escape_text(name) + "'"; }

void JsonScanner::fail(std::string_view what) const {
  throw DataError("{}: invalid JSON at byte {}: {}", origin_, at_, what);
}

void JsonScanner::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

bool JsonScanner::consume(char c) {
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool JsonScanner::consume_word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

void JsonScanner::expect(char c, std::string_view where) {
  if (consume(c)) return;
  const std::string found =
      at_end() ? "the text ends" : fmt::format("found {}", printable_name(text_.substr(at_, 1)));
  fail(fmt::format("'{}' expected in {}, {}", c, where, found));
}

std::string JsonScanner::string(std::string_view where) {
  expect('"', where);
  std::string out;
  while (true) {
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<unsigned char>(text_[at_]) >= 0x20) {
      ++at_;
    }
    out.append(text_.substr(start, at_ - start));
    if (at_end()) fail(fmt::format("string without end in {}", where));
    if (consume('"')) return out;
    if (!consume('\\')) fail(fmt::format("control character in a string in {}", where));
    append_escape(out);
  }
}

uint32_t JsonScanner::hex4() {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_end()) fail("four hexadecimal digits expected after \\u");
    const char c = text_[at_];
    const char lower = static_cast<char>(c | 0x20);
    if (is_digit(c)) {
      value = value * 16 + static_cast<uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<uint32_t>(lower - 'a' + 10);
    } else {
      fail("four hexadecimal digits expected after \\u");
    }
  }
  return value;
}

void JsonScanner::append_escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
  if (at_end()) fail("string without end");
  if (const size_t index = kLetters.find(text_[at_]); index != std::string_view::npos) {
    out += kValues[index];
    ++at_;
    return;
  }
  if (!consume('u')) fail("unknown escape");
  uint32_t code = hex4();
  if (code >= 0xDC00 && code <= 0xDFFF) fail("lone surrogate");
  if (code >= 0xD800 && code <= 0xDBFF) {
    if (!consume_word("\\u")) fail("lone surrogate");
    const uint32_t low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) fail("lone surrogate");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(out, code);
}

uint64_t JsonScanner::u64(std::string_view where) {
  const size_t start = at_;
  uint64_t value = 0;
  while (at_ < text_.size() && is_digit(text_[at_])) {
    if (__builtin_mul_overflow(value, 10U, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(text_[at_] - '0'), &value)) {
      fail(fmt::format("number above 2^64-1 in {}", where));
    }
    ++at_;
  }
  const bool leading_zero = at_ - start > 1 && text_[start] == '0';
  const bool fraction =
      at_ < text_.size() && std::string_view(".eE").find(text_[at_]) != std::string_view::npos;
  if (at_ == start || leading_zero || fraction) {
    at_ = start;
    fail(fmt::format("non-negative integer expected in {}", where));
  }
  return value;
}

void JsonScanner::skip_number() {
  const auto digits = [&] {
    const size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == start) fail("value expected");
  };
  consume('-');
  if (!consume('0')) digits();
  if (consume('.')) digits();
  if (consume('e') || consume('E')) {
    if (!consume('+')) consume('-');
    digits();
  }
}

void JsonScanner::skip_value(int depth) {
  if (depth <= 0) fail("nested too deep");
  if (at_end()) fail("value expected, the text ends");
  if (text_[at_] == '{') {
    object("an object", [&](std::string) { skip_value(depth - 1); });
  } else if (text_[at_] == '[') {
    array("an array", [&] { skip_value(depth - 1); });
  } else if (text_[at_] == '"') {
    string("a value");
  } else if (!consume_word("true") && !consume_word("false") && !consume_word("null")) {
    skip_number();
  }
}

}  // namespace mm::ckpt
