#include "lib/text/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "lib/text/utf8.h"

namespace mm::text {
namespace {

// A byte that is not UTF-8 travels as a value no character has.
constexpr char32_t kRawByte = 0x110000;

struct Character {
  char32_t value;
  uint32_t source;
  int combining_class;
};
using Characters = std::vector<Character>;

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

void decompose(char32_t c, uint32_t source, bool compatible, Characters& out) {
  if (c < 0xA0) {
    out.push_back({c, source, 0});
    return;
  }
  const int options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  std::array<utf8proc_int32_t, 32> parts;  // the longest decomposition has 18
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
                              static_cast<utf8proc_option_t>(options), nullptr);
  for (utf8proc_ssize_t i = 0; i < std::min<utf8proc_ssize_t>(count, parts.size()); ++i)
    out.push_back({static_cast<char32_t>(parts[i]), source, combining_class(parts[i])});
}

// The library composes whole texts only; two characters are a text.
char32_t compose(char32_t a, char32_t b) {
  if (b < 0x300 || a >= kRawByte || b >= kRawByte) return 0;
  std::array<utf8proc_int32_t, 2> pair = {static_cast<utf8proc_int32_t>(a),
                                          static_cast<utf8proc_int32_t>(b)};
  constexpr int kOptions = UTF8PROC_COMPOSE | UTF8PROC_STABLE;
  const auto length =
      utf8proc_normalize_utf32(pair.data(), pair.size(), static_cast<utf8proc_option_t>(kOptions));
  return length == 1 ? static_cast<char32_t>(pair[0]) : 0;
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
  out.reserve(characters.size());
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

Characters decomposed(TextView in, bool compatible) {
  Characters characters;
  characters.reserve(in.text.size());
  for (size_t at = 0; at < in.text.size();) {
    const CodePoint c = decode_utf8(in.text, at);
    if (c.valid) {
      decompose(c.value, in.source_of(at), compatible, characters);
    } else {
      characters.push_back(
          {kRawByte + static_cast<unsigned char>(in.text[at]), in.source_of(at), 0});
    }
    at += c.length_bytes;
  }
  order_marks(characters);
  return characters;
}

}  // namespace

bool is_nfc_quick(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
}

void append_normal_form(NormalForm form, TextView in, AlignedText& out) {
  Characters characters = decomposed(in, form == NormalForm::kNfkc || form == NormalForm::kNfkd);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) characters = join(characters);
  uint32_t source = 0;
  for (const Character& c : characters) {
    source = std::max(source, c.source);
    if (c.value >= kRawByte) {
      out.text += static_cast<char>(c.value - kRawByte);
    } else {
      append_utf8(c.value, out.text);
    }
    out.source_byte.resize(out.text.size(), source);
  }
}

AlignedText to_normal_form(NormalForm form, std::string_view text) {
  AlignedText out;
  append_normal_form(form, TextView(text), out);
  return out;
}

}  // namespace mm::text
