#include <utf8proc.h>

#include <nlohmann/json.hpp>

#include "lib/base/base64.h"
#include "lib/base/error.h"
#include "lib/text/character_map.h"
#include "lib/text/json_fields.h"
#include "lib/text/normalizer.h"
#include "lib/text/utf8.h"

namespace mm::text {
namespace {

using nlohmann::json;

// The end of the extended grapheme cluster that begins at `at`.
size_t grapheme_end(std::string_view text, size_t at) {
  CodePoint c = decode_utf8(text, at);
  size_t end = at + c.length_bytes;
  utf8proc_int32_t state = 0;
  while (c.valid && end < text.size()) {
    const CodePoint next = decode_utf8(text, end);
    if (!next.valid ||
        utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state))
      break;
    end += next.length_bytes;
    c = next;
  }
  return end;
}

// As the tokenizers library reads these maps: a short cluster is replaced whole by what its first
// bytes map to, a longer one character by character.
void map_cluster(const CharacterMap& map, TextView cluster, AlignedText& out) {
  constexpr size_t kShort = 6;
  if (cluster.text.size() < kShort) {
    if (const auto to = map.find(cluster.text)) return out.append(*to, cluster.source_of(0));
  }
  for (size_t at = 0; at < cluster.text.size();) {
    const std::string_view bytes =
        cluster.text.substr(at, decode_utf8(cluster.text, at).length_bytes);
    out.append(map.find(bytes).value_or(bytes), cluster.source_of(at));
    at += bytes.size();
  }
}

Normalizer::Step precompiled(const json& part, std::string_view origin) {
  const auto bytes = decode_base64(text_field(part, "precompiled_charsmap", "", origin));
  if (!bytes) throw DataError("{}: the precompiled_charsmap is not base 64", origin);
  std::string why;
  const auto map = CharacterMap::parse(*bytes, why);
  if (!map || !map->is_safe())
    throw DataError("{}: the file {}", origin, why.empty() ? "has a damaged normaliser" : why);
  return [map = *map](TextView in, AlignedText& out) {
    for (size_t at = 0; at < in.text.size();) {
      const size_t end = grapheme_end(in.text, at);
      map_cluster(map, in.part(at, end), out);
      at = end;
    }
    return true;
  };
}

void add_bert(const json& part, std::string_view origin, Normalizer& out) {
  steps::Bert bert;
  bert.clean_text = flag_field(part, "clean_text", true, origin);
  bert.handle_chinese_chars = flag_field(part, "handle_chinese_chars", true, origin);
  bert.lowercase = flag_field(part, "lowercase", true, origin);
  bert.strip_accents = flag_field(part, "strip_accents", bert.lowercase, origin);
  steps::add_bert(bert, out);
}

void add_step(const json& part, std::string_view origin, int depth, Normalizer& out) {
  const std::string type = type_of(part);
  if (type == "Sequence") {
    if (depth > 8) throw DataError("{}: normalizers are nested too deep", origin);
    for (const json& inner : list_field(part, "normalizers", origin))
      add_step(inner, origin, depth + 1, out);
    return;
  }
  if (type == "NFC") return out.add(steps::normal_form(NormalForm::kNfc));
  if (type == "NFD") return out.add(steps::normal_form(NormalForm::kNfd));
  if (type == "NFKC") return out.add(steps::normal_form(NormalForm::kNfkc));
  if (type == "NFKD") return out.add(steps::normal_form(NormalForm::kNfkd));
  if (type == "Lowercase") return out.add(steps::lower_case());
  if (type == "StripAccents") return out.add(steps::strip_accents());
  if (type == "Nmt") return out.add(steps::nmt());
  if (type == "BertNormalizer") return add_bert(part, origin, out);
  if (type == "Precompiled") return out.add(precompiled(part, origin));
  if (type == "Prepend") return out.add(steps::prepend(text_field(part, "prepend", "", origin)));
  if (type == "Strip") {
    return out.add(steps::strip(flag_field(part, "strip_left", true, origin),
                                flag_field(part, "strip_right", true, origin)));
  }
  if (type == "Replace") {
    return out.add(
        steps::replace(pattern_field(part, origin), text_field(part, "content", "", origin)));
  }
  refuse_type("normaliser", part, origin);
}

}  // namespace

Normalizer read_normalizer(const json& part, std::string_view origin) {
  Normalizer out;
  if (!part.is_null()) add_step(part, origin, 0, out);
  return out;
}

}  // namespace mm::text
