#include "lib/text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "lib/base/error.h"
#include "lib/text/pattern_dialect.h"
#include "lib/text/utf8.h"

namespace mm::text {
namespace {

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
using CodePtr = std::unique_ptr<pcre2_code, FreeCode>;

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

CodePtr compile(const std::string& expression, uint32_t flags, std::string_view origin) {
  int error = 0;
  PCRE2_SIZE at = 0;
  CodePtr code(pcre2_compile(units(expression), expression.size(), flags, &error, &at, nullptr));
  if (code == nullptr) {
    char message[256] = {};
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof message);
    throw DataError("{}: the pattern \"{}\" is wrong at character {}: {}", origin,
                    expression.substr(0, 200), at, message);
  }
  // Without a JIT for this CPU the interpreter gives the same matches, slower.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

struct Range {
  size_t begin, end;
  bool matches;
};
using Ranges = std::vector<Range>;

// Neighbours of one kind become one.
Ranges joined(const Ranges& ranges) {
  Ranges out;
  for (const Range& r : ranges) {
    if (!out.empty() && out.back().matches == r.matches) {
      out.back().end = r.end;
    } else {
      out.push_back(r);
    }
  }
  return out;
}

// A match joins the piece before it, unless that ended with a match.
Ranges joined_to_previous(const Ranges& ranges) {
  Ranges out;
  bool after_match = false;
  for (const Range& r : ranges) {
    if (r.matches && !after_match && !out.empty()) {
      out.back().end = r.end;
    } else {
      out.push_back(r);
    }
    after_match = r.matches;
  }
  return out;
}

// The mirror image.
Ranges joined_to_next(const Ranges& ranges) {
  Ranges out;
  bool before_match = false;
  for (auto r = ranges.rbegin(); r != ranges.rend(); ++r) {
    if (r->matches && !before_match && !out.empty()) {
      out.back().begin = r->begin;
    } else {
      out.push_back(*r);
    }
    before_match = r->matches;
  }
  return {out.rbegin(), out.rend()};
}

}  // namespace

// Two programs: texts that are UTF-8 take the one that does not look for damage at every step.
struct Pattern::Code {
  CodePtr strict, lenient;

  void split(std::string_view text, Part part) const {
    const pcre2_code* code = is_valid_utf8(text) ? strict.get() : lenient.get();
    const uint32_t options = code == strict.get() ? PCRE2_NO_UTF_CHECK : 0;
    const std::unique_ptr<pcre2_match_data, FreeMatchData> match(
        pcre2_match_data_create_from_pattern(code, nullptr));
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match.get());
    size_t done = 0, at = 0, last_match = SIZE_MAX;
    while (at <= text.size()) {
      const int found =
          pcre2_match(code, units(text), text.size(), at, options, match.get(), nullptr);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0)
        throw DataError("splitting a text of {} bytes into words failed with PCRE2 error {}",
                        text.size(), found);
      const size_t begin = span[0], end = span[1];
      if (begin == end && end == last_match) {  // an empty match right after a match does not count
        if (at >= text.size()) break;
        at += decode_utf8(text, at).length_bytes;
        continue;
      }
      if (begin > done) part(done, begin, false);
      part(begin, end, true);
      done = at = last_match = end;
    }
    if (done < text.size()) part(done, text.size(), false);
  }
};

Pattern Pattern::regex(std::string_view expression, std::string_view origin) {
  constexpr uint32_t kFlags = PCRE2_UTF | PCRE2_UCP;
  const std::string translated = to_pcre2(expression, origin);
  auto code = std::make_shared<Code>();
  code->strict = compile(translated, kFlags, origin);
  code->lenient = compile(translated, kFlags | PCRE2_MATCH_INVALID_UTF, origin);
  Pattern out;
  out.code_ = std::move(code);
  return out;
}

Pattern Pattern::literal(std::string text) {
  Pattern out;
  out.literal_ = std::move(text);
  return out;
}

void Pattern::split_literal(std::string_view text, Part part) const {
  size_t done = 0;
  while (!literal_.empty()) {
    const size_t at = text.find(literal_, done);
    if (at == std::string_view::npos) break;
    if (at > done) part(done, at, false);
    done = at + literal_.size();
    part(at, done, true);
  }
  if (done < text.size()) part(done, text.size(), false);
}

void Pattern::split(std::string_view text, Part part) const {
  if (text.empty()) return;
  if (code_ == nullptr) return split_literal(text, part);
  code_->split(text, part);
}

void Pattern::cut(std::string_view text, SplitBehavior behavior, bool invert,
                  FunctionRef<void(size_t, size_t)> word) const {
  cut_ranges([&](Part part) { split(text, part); }, behavior, invert, word);
}

void cut_ranges(FunctionRef<void(Pattern::Part)> each_part, SplitBehavior behavior, bool invert,
                FunctionRef<void(size_t, size_t)> word) {
  if (behavior == SplitBehavior::kIsolated || behavior == SplitBehavior::kRemoved) {
    const bool removes = behavior == SplitBehavior::kRemoved;
    return each_part([&](size_t begin, size_t end, bool matches) {
      if (end > begin && !(removes && matches != invert)) word(begin, end);
    });
  }
  Ranges ranges;
  each_part([&](size_t begin, size_t end, bool matches) {
    ranges.push_back({begin, end, matches != invert});
  });
  if (behavior == SplitBehavior::kContiguous) ranges = joined(ranges);
  if (behavior == SplitBehavior::kMergedWithPrevious) ranges = joined_to_previous(ranges);
  if (behavior == SplitBehavior::kMergedWithNext) ranges = joined_to_next(ranges);
  for (const Range& r : ranges) {
    if (r.end > r.begin) word(r.begin, r.end);
  }
}

}  // namespace mm::text
