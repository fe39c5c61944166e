#include "lib/text/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "lib/base/error.h"

namespace mm::text {
namespace {

// The published patterns of three tokenizer families; data, to the letter.
constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct MatchData {
  pcre2_match_data* data;
  explicit MatchData(const pcre2_code* code)
      : data(pcre2_match_data_create_from_pattern(code, nullptr)) {}
  MatchData(const MatchData&) = delete;
  ~MatchData() { pcre2_match_data_free(data); }
};

}  // namespace

struct SplitPattern::Code {
  pcre2_code* code = nullptr;
  Code() = default;
  Code(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

SplitPattern::SplitPattern(const std::string& pattern) {
  auto code = std::make_shared<Code>();
  int error = 0;
  PCRE2_SIZE at = 0;
  constexpr uint32_t kFlags = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF;
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kFlags,
                             &error, &at, nullptr);
  MM_CHECK(code->code != nullptr, "pattern {} fails at {} with error {}", pattern, at, error);
  // Without a JIT for this CPU the interpreter gives the same matches, slower.
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);
  code_ = std::move(code);
}

SplitPattern SplitPattern::gpt2() { return SplitPattern(kGpt2); }

SplitPattern SplitPattern::known(std::string_view pattern, std::string_view origin) {
  for (const char* known : {kGpt2, kLlama3, kQwen2}) {
    if (pattern == known) return SplitPattern(known);
  }
  throw DataError(
      "{}: unknown split pattern \"{}\"; the patterns of GPT-2, Llama 3 and Qwen2 are supported",
      origin, pattern.substr(0, 200));
}

void SplitPattern::split(std::string_view text,
                         const std::function<void(size_t, size_t)>& word) const {
  if (text.empty()) return;
  if (code_ == nullptr) return word(0, text.size());
  const MatchData match(code_->code);
  size_t at = 0;
  while (at < text.size()) {
    const int found = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                  text.size(), at, 0, match.data, nullptr);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      throw DataError("splitting a text of {} bytes into words failed with PCRE2 error {}",
                      text.size(), found);
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match.data);
    if (span[1] <= span[0]) break;
    if (span[0] > at) word(at, span[0]);
    word(span[0], span[1]);
    at = span[1];
  }
  if (at < text.size()) word(at, text.size());
}

}  // namespace mm::text
