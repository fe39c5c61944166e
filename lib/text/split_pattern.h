#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace mm::text {

/// Cuts text as a byte-level BPE's pre-tokenizer does: every match of a pattern is a word, and so
/// is every gap between matches. Only patterns that are known to mean the same in PCRE2 as where
/// they come from are accepted. Thread-safe.
class SplitPattern {
 public:
  /// GPT-2's pattern, which the ByteLevel pre-tokenizer implies.
  static SplitPattern gpt2();
  /// The pattern of a Split pre-tokenizer: Llama 3's or Qwen2's. Throws DataError with `origin` for
  /// others.
  static SplitPattern known(std::string_view pattern, std::string_view origin);
  /// The whole text is one word.
  static SplitPattern whole() { return {}; }

  /// Calls word(begin, end) for byte ranges that cover `text` in order. Throws DataError if the
  /// matcher gives up.
  void split(std::string_view text, const std::function<void(size_t, size_t)>& word) const;

 private:
  struct Code;
  SplitPattern() = default;
  explicit SplitPattern(const std::string& pattern);
  std::shared_ptr<const Code> code_;
};

}  // namespace mm::text
