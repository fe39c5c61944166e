#include "lib/text/normalizer.h"

#include "lib/text/unicode.h"
#include "lib/text/utf8.h"

namespace mm::text {
namespace {

// Calls f(c, valid, bytes, source) for each character; bytes that are not UTF-8 come one by one.
template <typename F>
void each_character(TextView in, F&& f) {
  for (size_t at = 0; at < in.text.size();) {
    const CodePoint c = decode_utf8(in.text, at);
    f(c, in.text.substr(at, c.length_bytes), in.source_of(at));
    at += c.length_bytes;
  }
}

// A step that keeps or drops whole characters.
template <typename Drop>
Normalizer::Step dropping(Drop drop) {
  return [drop](TextView in, AlignedText& out) {
    bool changed = false;
    each_character(in, [&](const CodePoint& c, std::string_view bytes, uint32_t source) {
      if (c.valid && drop(c.value)) {
        changed = true;
      } else {
        out.append(bytes, source);
      }
    });
    return changed;
  };
}

// A step that gives each character a text: f(c, bytes, text).
template <typename F>
Normalizer::Step mapping(F f) {
  return [f](TextView in, AlignedText& out) {
    std::string text;
    each_character(in, [&](const CodePoint& c, std::string_view bytes, uint32_t source) {
      text.clear();
      if (c.valid) {
        f(c.value, bytes, text);
      } else {
        text = bytes;
      }
      out.append(text, source);
    });
    return true;
  };
}

bool is_bert_control(char32_t c) {
  return c == 0 || c == 0xFFFD || (c != '\t' && c != '\n' && c != '\r' && is_other(c));
}

void clean(char32_t c, std::string_view bytes, std::string& out) {
  if (is_bert_control(c)) return;
  if (is_white_space(c)) {
    out += ' ';
  } else {
    out += bytes;
  }
}

void stand_apart(char32_t c, std::string_view bytes, std::string& out) {
  if (!is_ideograph(c)) {
    out += bytes;
    return;
  }
  out += ' ';
  out += bytes;
  out += ' ';
}

bool is_nmt_control(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

bool is_nmt_blank(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

}  // namespace

TextView Normalizer::apply(TextView in, std::array<AlignedText, 2>& buffers) const {
  size_t free = 0;
  for (const Step& step : steps_) {
    buffers[free].clear();
    if (!step(in, buffers[free])) continue;
    in = TextView(buffers[free]);
    free = 1 - free;
  }
  return in;
}

std::string Normalizer::apply(std::string_view text) const {
  std::array<AlignedText, 2> buffers;
  return std::string(apply(TextView(text), buffers).text);
}

namespace steps {

Normalizer::Step normal_form(NormalForm form) {
  return [form](TextView in, AlignedText& out) {
    if (form == NormalForm::kNfc && is_nfc_quick(in.text)) return false;
    append_normal_form(form, in, out);
    return true;
  };
}

Normalizer::Step lower_case() {
  return mapping([](char32_t c, std::string_view, std::string& text) { append_lower(c, text); });
}

Normalizer::Step strip_accents() { return dropping(is_mark); }

Normalizer::Step strip(bool left, bool right) {
  return [=](TextView in, AlignedText& out) {
    size_t begin = SIZE_MAX, end = 0;
    for (size_t at = 0; at < in.text.size();) {
      const CodePoint c = decode_utf8(in.text, at);
      if (!c.valid || !is_white_space(c.value)) {
        begin = std::min(begin, at);
        end = at + c.length_bytes;
      }
      at += c.length_bytes;
    }
    if (begin == SIZE_MAX) begin = end = left ? in.text.size() : 0;
    if (!left) begin = 0;
    if (!right) end = in.text.size();
    if (begin == 0 && end == in.text.size()) return false;
    each_character(in.part(begin, end), [&](const CodePoint&, std::string_view bytes,
                                            uint32_t source) { out.append(bytes, source); });
    return true;
  };
}

Normalizer::Step replace(Pattern pattern, std::string content) {
  return
      [pattern = std::move(pattern), content = std::move(content)](TextView in, AlignedText& out) {
        bool changed = false;
        const auto keep = [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) out.append(in.text.substr(i, 1), in.source_of(i));
        };
        pattern.split(in.text, [&](size_t begin, size_t end, bool matches) {
          if (!matches) return keep(begin, end);
          changed = true;
          if (begin < in.text.size()) out.append(content, in.source_of(begin));
        });
        return changed;
      };
}

Normalizer::Step prepend(std::string prefix) {
  return [prefix = std::move(prefix)](TextView in, AlignedText& out) {
    if (in.text.empty()) return false;
    out.append(prefix, in.source_of(0));
    for (size_t i = 0; i < in.text.size(); ++i) out.append(in.text.substr(i, 1), in.source_of(i));
    return true;
  };
}

Normalizer::Step nmt() {
  return mapping([](char32_t c, std::string_view bytes, std::string& text) {
    if (is_nmt_control(c)) return;
    text = is_nmt_blank(c) ? std::string_view(" ") : bytes;
  });
}

void add_bert(const Bert& options, Normalizer& out) {
  if (options.clean_text) out.add(mapping(clean));
  if (options.handle_chinese_chars) out.add(mapping(stand_apart));
  if (options.strip_accents) {
    out.add(normal_form(NormalForm::kNfd));
    out.add(dropping(is_nonspacing_mark));
  }
  if (options.lowercase) out.add(lower_case());
}

}  // namespace steps
}  // namespace mm::text
