#include "lib/text/nfc.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "lib/text/utf8.h"

namespace mm::text {
namespace {

struct Decomposition {
  char32_t whole, first, second;  // second 0: a single character
};
struct Composition {
  char32_t first, second, whole;
};
struct CombiningRange {
  char32_t first, last;
  int combining_class;
};
#include "lib/text/nfc_table.inc"

// Hangul syllables follow from arithmetic (The Unicode Standard, section 3.12).
constexpr char32_t kSBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161, kTBase = 0x11A7;
constexpr char32_t kLCount = 19, kVCount = 21, kTCount = 28, kSCount = kLCount * kVCount * kTCount;

// A byte that is not UTF-8 travels as a value no character has.
constexpr char32_t kRawByte = 0x110000;

struct Character {
  char32_t value;
  uint32_t source;
  int combining_class;
};
using Characters = std::vector<Character>;

int combining_class(char32_t c) {
  const auto* range =
      std::upper_bound(std::begin(kCombiningClasses), std::end(kCombiningClasses), c,
                       [](char32_t value, const CombiningRange& r) { return value < r.first; });
  if (range == std::begin(kCombiningClasses)) return 0;
  --range;
  return c <= range->last ? range->combining_class : 0;
}

void decompose(char32_t c, uint32_t source, Characters& out) {
  if (c >= kSBase && c < kSBase + kSCount) {
    const char32_t s = c - kSBase;
    out.push_back({kLBase + s / (kVCount * kTCount), source, 0});
    out.push_back({kVBase + s % (kVCount * kTCount) / kTCount, source, 0});
    if (s % kTCount != 0) out.push_back({kTBase + s % kTCount, source, 0});
    return;
  }
  const auto* found =
      std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), c,
                       [](const Decomposition& d, char32_t value) { return d.whole < value; });
  if (found == std::end(kDecompositions) || found->whole != c) {
    out.push_back({c, source, combining_class(c)});
    return;
  }
  decompose(found->first, source, out);
  if (found->second != 0) decompose(found->second, source, out);
}

char32_t compose(char32_t a, char32_t b) {
  if (a >= kLBase && a < kLBase + kLCount && b >= kVBase && b < kVBase + kVCount) {
    return kSBase + ((a - kLBase) * kVCount + (b - kVBase)) * kTCount;
  }
  const bool lv = a >= kSBase && a < kSBase + kSCount && (a - kSBase) % kTCount == 0;
  if (lv && b > kTBase && b < kTBase + kTCount) return a + (b - kTBase);
  const auto* found = std::lower_bound(
      std::begin(kCompositions), std::end(kCompositions), std::tuple(a, b),
      [](const Composition& c, const auto& key) { return std::tuple(c.first, c.second) < key; });
  return found != std::end(kCompositions) && found->first == a && found->second == b ? found->whole
                                                                                     : 0;
}

void order_marks(Characters& characters) {
  const auto is_mark = [](const Character& c) { return c.combining_class != 0; };
  for (auto begin = characters.begin(); begin != characters.end();) {
    begin = std::find_if(begin, characters.end(), is_mark);
    const auto end = std::find_if_not(begin, characters.end(), is_mark);
    std::stable_sort(begin, end, [](const Character& a, const Character& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end;
  }
}

// A mark joins the last starter unless a character of the same or a higher class stands between
// them.
Characters join(const Characters& characters) {
  Characters out;
  size_t starter = SIZE_MAX;
  for (const Character& c : characters) {
    const bool adjacent = starter != SIZE_MAX && starter + 1 == out.size();
    const bool blocked =
        !adjacent && (out.empty() || out.back().combining_class >= c.combining_class);
    const char32_t whole =
        starter != SIZE_MAX && !blocked ? compose(out[starter].value, c.value) : 0;
    if (whole != 0) {
      out[starter].value = whole;
      continue;
    }
    if (c.combining_class == 0) starter = out.size();
    out.push_back(c);
  }
  return out;
}

}  // namespace

bool is_nfc_quick(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
}

Normalised to_nfc(std::string_view text) {
  Characters characters;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    const auto source = static_cast<uint32_t>(at);
    if (c.valid) {
      decompose(c.value, source, characters);
    } else {
      characters.push_back({kRawByte + static_cast<unsigned char>(text[at]), source, 0});
    }
    at += c.length_bytes;
  }
  order_marks(characters);
  Normalised out;
  uint32_t source = 0;
  for (const Character& c : join(characters)) {
    source = std::max(source, c.source);
    if (c.value >= kRawByte) {
      out.text += static_cast<char>(c.value - kRawByte);
    } else {
      append_utf8(c.value, out.text);
    }
    out.source_byte.resize(out.text.size(), source);
  }
  return out;
}

}  // namespace mm::text
