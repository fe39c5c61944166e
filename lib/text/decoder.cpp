#include "lib/text/decoder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/text/byte_alphabet.h"
#include "lib/text/json_fields.h"
#include "lib/text/utf8.h"

namespace mm::text {
namespace {

using nlohmann::json;
using Pieces = Decoder::Pieces;

std::string joined(const Pieces& pieces, std::string_view between) {
  std::string out;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) out += between;
    out += pieces[i];
  }
  return out;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

void byte_level(Pieces& pieces) {
  std::string bytes;
  for (const std::string& piece : pieces) bytes += spelling_to_bytes(piece).value_or(piece);
  pieces = {replace_invalid_utf8(bytes)};
}

int byte_of(std::string_view piece) {
  int value = -1;
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  return error == std::errc() && end == piece.data() + 5 ? value : -1;
}

// Runs of <0xNN> that are UTF-8 together become text, others one U+FFFD a byte.
void byte_fallback(Pieces& pieces) {
  Pieces out;
  std::string run;
  const auto flush = [&] {
    if (run.empty()) return;
    if (is_valid_utf8(run)) {
      out.push_back(run);
    } else {
      out.insert(out.end(), run.size(), "\uFFFD");
    }
    run.clear();
  };
  for (std::string& piece : pieces) {
    const int byte = byte_of(piece);
    if (byte >= 0) {
      run.push_back(static_cast<char>(byte));
      continue;
    }
    flush();
    out.push_back(std::move(piece));
  }
  flush();
  pieces = std::move(out);
}

Decoder::Step metaspace(std::string sign, bool drops_first) {
  return [=](Pieces& pieces) {
    for (size_t i = 0; i < pieces.size(); ++i)
      replace_all(pieces[i], sign, i == 0 && drops_first ? "" : " ");
  };
}

void clean_up(std::string& piece) {
  constexpr std::array<std::array<std::string_view, 2>, 11> kPairs = {{{" .", "."},
                                                                       {" ?", "?"},
                                                                       {" !", "!"},
                                                                       {" ,", ","},
                                                                       {" ' ", "'"},
                                                                       {" n't", "n't"},
                                                                       {" 'm", "'m"},
                                                                       {" do not", " don't"},
                                                                       {" 's", "'s"},
                                                                       {" 've", "'ve"},
                                                                       {" 're", "'re"}}};
  for (const auto& [from, to] : kPairs) replace_all(piece, from, to);
}

Decoder::Step word_piece(std::string prefix, bool cleans) {
  return [=](Pieces& pieces) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) {
        if (!prefix.empty() && pieces[i].starts_with(prefix)) {
          pieces[i].erase(0, prefix.size());
        } else {
          pieces[i].insert(pieces[i].begin(), ' ');
        }
      }
      if (cleans) clean_up(pieces[i]);
    }
  };
}

Decoder::Step bpe(std::string suffix) {
  return [=](Pieces& pieces) {
    for (size_t i = 0; i < pieces.size(); ++i)
      replace_all(pieces[i], suffix, i + 1 == pieces.size() ? "" : " ");
  };
}

Decoder::Step strip(std::string content, size_t start, size_t stop) {
  return [=](Pieces& pieces) {
    for (std::string& piece : pieces) {
      for (size_t i = 0; i < start && piece.starts_with(content); ++i)
        piece.erase(0, content.size());
      for (size_t i = 0; i < stop && piece.ends_with(content); ++i)
        piece.resize(piece.size() - content.size());
    }
  };
}

Decoder::Step replace(Pattern pattern, std::string content) {
  return [pattern = std::move(pattern), content = std::move(content)](Pieces& pieces) {
    for (std::string& piece : pieces) {
      std::string out;
      pattern.split(piece, [&](size_t begin, size_t end, bool matches) {
        out += matches ? std::string_view(content)
                       : std::string_view(piece).substr(begin, end - begin);
      });
      piece = std::move(out);
    }
  };
}

size_t count_field(const json& part, const char* key, std::string_view origin) {
  const auto found = part.find(key);
  if (found == part.end()) return 0;
  if (!found->is_number_unsigned()) throw DataError("{}: {} of Strip is no count", origin, key);
  return found->get<size_t>();
}

void add_metaspace(const json& part, std::string_view origin, Decoder& out) {
  const bool never = text_field(part, "prepend_scheme", "always", origin) == "never" ||
                     !flag_field(part, "add_prefix_space", true, origin);
  const std::string sign = text_field(part, "replacement", "\u2581", origin);
  out.add(metaspace(sign, !never));
}

void add_strip(const json& part, std::string_view origin, Decoder& out) {
  const std::string content = text_field(part, "content", " ", origin);
  if (content.empty()) throw DataError("{}: decoder Strip has no content", origin);
  out.add(strip(content, count_field(part, "start", origin), count_field(part, "stop", origin)));
}

void add_step(const json& part, std::string_view origin, int depth, Decoder& out) {
  const std::string type = type_of(part);
  if (type == "Sequence") {
    if (depth > 8) throw DataError("{}: decoders are nested too deep", origin);
    for (const json& inner : list_field(part, "decoders", origin))
      add_step(inner, origin, depth + 1, out);
    return;
  }
  if (type == "ByteLevel") return out.add(byte_level);
  if (type == "ByteFallback") return out.add(byte_fallback);
  if (type == "Fuse") return out.add([](Pieces& pieces) { pieces = {joined(pieces, "")}; });
  if (type == "Metaspace") return add_metaspace(part, origin, out);
  if (type == "Strip") return add_strip(part, origin, out);
  if (type == "BPEDecoder") return out.add(bpe(text_field(part, "suffix", "</w>", origin)));
  if (type == "WordPiece")
    return out.add(word_piece(text_field(part, "prefix", "##", origin),
                              flag_field(part, "cleanup", true, origin)));
  if (type == "Replace")
    return out.add(replace(pattern_field(part, origin), text_field(part, "content", "", origin)));
  refuse_type("decoder", part, origin);
}

}  // namespace

std::string Decoder::decode(Pieces pieces) const {
  for (const Step& step : steps_) step(pieces);
  return replace_invalid_utf8(joined(pieces, blanks_ ? " " : ""));
}

Decoder word_end_decoder(std::string_view suffix) {
  Decoder out;
  out.add([suffix = std::string(suffix)](Pieces& pieces) {
    std::string bytes;
    for (const std::string& piece : pieces) {
      bytes += spelling_to_bytes(piece).value_or(piece);
      if (!bytes.ends_with(suffix)) continue;
      bytes.resize(bytes.size() - suffix.size());
      if (&piece != &pieces.back()) bytes += ' ';
    }
    pieces = {bytes};
  });
  return out;
}

Decoder read_decoder(const json& part, std::string_view origin) {
  Decoder out;
  if (part.is_null()) {
    out.set_joined_with_blanks();
    return out;
  }
  add_step(part, origin, 0, out);
  if (type_of(part) == "ByteLevel") out.set_bytes_only();
  return out;
}

}  // namespace mm::text
