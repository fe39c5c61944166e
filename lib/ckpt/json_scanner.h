#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mm::ckpt {

/// True if `text` is well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool is_valid_utf8(std::string_view text);

/// `text` as a JSON string with quotes. Bytes above 0x7F pass unchanged: give valid UTF-8.
std::string json_quoted(std::string_view text);

/// A name from a file, made safe for one line: escape_text in single quotes.
std::string printable_name(std::string_view name);

/// Reads strict JSON (RFC 8259) front to back without building a tree: one million tensors cost no
/// more memory than what the caller keeps. The caller says what must come next; anything else
/// throws DataError with `origin`, the byte offset and what was expected. Integers are unsigned
/// 64-bit without sign, fraction or exponent. `text` must be valid UTF-8 and outlive the scanner.
class JsonScanner {
 public:
  JsonScanner(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  void skip_space();
  size_t offset() const { return at_; }
  bool at_end() const { return at_ == text_.size(); }
  /// True, and one byte further, if the next byte is `c`.
  bool consume(char c);
  /// True, and behind it, if the text goes on with `word` ("null").
  bool consume_word(std::string_view word);
  void expect(char c, std::string_view where);
  /// A string with its escapes resolved. Lone surrogates and raw control characters are refused.
  std::string string(std::string_view where);
  uint64_t u64(std::string_view where);
  /// Passes over any value, nested at most `depth` deep.
  void skip_value(int depth);
  [[noreturn]] void fail(std::string_view what) const;

  /// {"key": value, ...}: calls `member(key)` with the scanner at the value, which it must consume.
  template <typename Member>
  void object(std::string_view where, Member&& member) {
    expect('{', where);
    skip_space();
    if (consume('}')) return;
    do {
      skip_space();
      std::string key = string(where);
      skip_space();
      expect(':', where);
      skip_space();
      member(std::move(key));
      skip_space();
    } while (consume(','));
    expect('}', where);
  }

  /// [value, ...]: calls `element()` with the scanner at each value.
  template <typename Element>
  void array(std::string_view where, Element&& element) {
    expect('[', where);
    skip_space();
    if (consume(']')) return;
    do {
      skip_space();
      element();
      skip_space();
    } while (consume(','));
    expect(']', where);
  }

 private:
  void append_escape(std::string& out);
  uint32_t hex4();
  void skip_number();

  std::string_view text_;
  std::string_view origin_;
  size_t at_ = 0;
};

}  // namespace mm::ckpt
