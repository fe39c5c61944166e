#include "tools/mm_oracle/not_built.h"

#include <algorithm>

namespace mm::oracle {
namespace {

struct Entry {
  const char* kind;
  const char* pattern;
};

constexpr Entry kNotBuilt[] = {
    {"moe", "*"},
};

}  // namespace

bool matches(const std::string& pattern, const std::string& text) {
  size_t p = 0, t = 0, star = std::string::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(),
                     [](char c) { return c == '*'; });
}

bool is_not_built(const std::string& kind, const std::string& quantity) {
  return std::ranges::any_of(kNotBuilt, [&](const Entry& entry) {
    return kind == entry.kind && matches(entry.pattern, quantity);
  });
}

}  // namespace mm::oracle
