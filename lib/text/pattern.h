#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/function_ref.h"

namespace mm::text {

/// What becomes of the matches of a pattern when a text is cut at them.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// A literal or a regular expression that cuts text. Expressions are in Oniguruma's dialect, as
/// tokenizer.json and tiktoken use it, with Unicode classes; what PCRE2 would read otherwise is
/// translated or refused (pattern_dialect.h). Copies share the compiled code. Thread-safe.
class Pattern {
 public:
  /// Throws DataError with `origin` and the reason for what cannot be compiled.
  static Pattern regex(std::string_view expression, std::string_view origin);
  static Pattern literal(std::string text);

  using Part = FunctionRef<void(size_t begin, size_t end, bool matches)>;
  /// Calls part for byte ranges that cover `text` in order: matches (which may be empty) and the
  /// gaps between them. Throws DataError if the matcher gives up.
  void split(std::string_view text, Part part) const;
  /// Calls word(begin, end) for the pieces that are left, none empty. `invert` takes gaps for
  /// matches and the reverse.
  void cut(std::string_view text, SplitBehavior behavior, bool invert,
           FunctionRef<void(size_t begin, size_t end)> word) const;

 private:
  struct Code;
  Pattern() = default;
  void split_literal(std::string_view text, Part part) const;
  std::shared_ptr<const Code> code_;  ///< null: a literal
  std::string literal_;
};

/// The pieces that a behaviour makes of parts, which `each_part` lists; see Pattern::cut.
void cut_ranges(FunctionRef<void(Pattern::Part)> each_part, SplitBehavior behavior, bool invert,
                FunctionRef<void(size_t begin, size_t end)> word);

}  // namespace mm::text
