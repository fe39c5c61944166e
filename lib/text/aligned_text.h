#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mm::text {

/// A text that was made from another, and for each of its bytes the byte of that source that it
/// came from (non-decreasing).
struct AlignedText {
  std::string text;
  std::vector<uint32_t> source_byte;  ///< as long as `text`

  void clear() {
    text.clear();
    source_byte.clear();
  }
  void append(std::string_view bytes, uint32_t source) {
    text.append(bytes);
    source_byte.resize(text.size(), source);
  }
};

/// A part of a source text, or of an AlignedText. Owns nothing.
struct TextView {
  std::string_view text;
  const uint32_t* source_byte = nullptr;  ///< null: byte i came from base + i
  uint32_t base = 0;

  TextView() = default;
  explicit TextView(std::string_view source, uint32_t first = 0) : text(source), base(first) {}
  explicit TextView(const AlignedText& aligned)
      : text(aligned.text), source_byte(aligned.source_byte.data()) {}

  /// Source byte of byte `at` < text.size().
  uint32_t source_of(size_t at) const {
    return source_byte != nullptr ? source_byte[at] : base + static_cast<uint32_t>(at);
  }
  /// Bytes [begin, end).
  TextView part(size_t begin, size_t end) const {
    TextView out;
    out.text = text.substr(begin, end - begin);
    if (source_byte != nullptr) {
      out.source_byte = source_byte + begin;
    } else {
      out.base = base + static_cast<uint32_t>(begin);
    }
    return out;
  }
};

}  // namespace mm::text
