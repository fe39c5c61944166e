#include "lib/text/pre_tokenizer.h"

#include "lib/text/utf8.h"

namespace mm::text {

void PreTokenizer::run(size_t step, TextView piece, bool at_start, Sink word) const {
  if (piece.text.empty()) return;
  if (step == steps_.size()) return word(piece);
  const bool first = at_start && piece.source_of(0) == 0;
  steps_[step](piece, first, [&](TextView part) { run(step + 1, part, at_start, word); });
}

namespace steps {
namespace {

// Runs of characters that satisfy the predicate or do not, one character a match.
void each_run(std::string_view text, bool (*predicate)(char32_t), Pattern::Part part) {
  size_t gap = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    const size_t end = at + c.length_bytes;
    if (c.valid && predicate(c.value)) {
      if (at > gap) part(gap, at, false);
      part(at, end, true);
      gap = end;
    }
    at = end;
  }
  if (text.size() > gap) part(gap, text.size(), false);
}

void append_all(TextView in, AlignedText& out) {
  for (size_t i = 0; i < in.text.size(); ++i) out.append(in.text.substr(i, 1), in.source_of(i));
}

// `text` with blanks as signs, and where each sign begins.
AlignedText with_signs(TextView in, std::string_view sign, std::vector<size_t>& signs) {
  AlignedText out;
  for (size_t i = 0; i < in.text.size(); ++i) {
    const bool blank = in.text[i] == ' ';
    if (blank || in.text.substr(i).starts_with(sign)) signs.push_back(out.text.size());
    if (blank) {
      out.append(sign, in.source_of(i));
    } else {
      out.append(in.text.substr(i, 1), in.source_of(i));
    }
  }
  return out;
}

}  // namespace

PreTokenizer::Step cut_at(Pattern pattern, SplitBehavior behavior, bool invert) {
  return [=](TextView piece, bool, PreTokenizer::Sink out) {
    pattern.cut(piece.text, behavior, invert,
                [&](size_t begin, size_t end) { out(piece.part(begin, end)); });
  };
}

PreTokenizer::Step cut_at(bool (*predicate)(char32_t), SplitBehavior behavior) {
  return [=](TextView piece, bool, PreTokenizer::Sink out) {
    cut_ranges([&](Pattern::Part part) { each_run(piece.text, predicate, part); }, behavior, false,
               [&](size_t begin, size_t end) { out(piece.part(begin, end)); });
  };
}

PreTokenizer::Step prefix_blank() {
  return [](TextView piece, bool, PreTokenizer::Sink out) {
    if (piece.text.starts_with(' ')) return out(piece);
    AlignedText text;
    text.append(" ", piece.source_of(0));
    append_all(piece, text);
    out(TextView(text));
  };
}

PreTokenizer::Step metaspace(std::string sign, Prepend prepend, bool split) {
  return [=](TextView piece, bool first, PreTokenizer::Sink out) {
    const bool has_sign = piece.text[0] == ' ' || piece.text.starts_with(sign);
    AlignedText front;
    std::vector<size_t> signs;
    if (!has_sign && (prepend == Prepend::kAlways || (prepend == Prepend::kFirst && first))) {
      front.append(sign, piece.source_of(0));
      append_all(piece, front);
      piece = TextView(front);
    }
    const AlignedText text = with_signs(piece, sign, signs);
    const TextView whole(text);
    if (!split) return out(whole);
    size_t begin = 0;
    for (const size_t at : signs) {
      if (at > begin) out(whole.part(begin, at));
      begin = at;
    }
    out(whole.part(begin, text.text.size()));
  };
}

}  // namespace steps
}  // namespace mm::text
