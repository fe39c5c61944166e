#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/text/json_fields.h"
#include "lib/text/pre_tokenizer.h"
#include "lib/text/unicode.h"

namespace mm::text {

// The published pattern; data, to the letter.
const char* const kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

using nlohmann::json;

SplitBehavior behavior_field(const json& part, std::string_view origin) {
  const std::string name = text_field(part, "behavior", "Isolated", origin);
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  throw DataError("{}: {} has the unknown behavior \"{}\"", origin, type_of(part), name);
}

void add_byte_level(const json& part, std::string_view origin, PreTokenizer& out) {
  if (flag_field(part, "add_prefix_space", true, origin)) out.add(steps::prefix_blank());
  if (flag_field(part, "use_regex", true, origin))
    out.add(steps::cut_at(Pattern::regex(kGpt2Pattern, origin), SplitBehavior::kIsolated, false));
  out.set_byte_level();
}

// Files of before 0.15 have add_prefix_space in place of prepend_scheme, and always split.
void add_metaspace(const json& part, std::string_view origin, PreTokenizer& out) {
  const std::string scheme = text_field(part, "prepend_scheme", "", origin);
  Prepend prepend = Prepend::kAlways;
  if (scheme == "first") prepend = Prepend::kFirst;
  if (scheme == "never") prepend = Prepend::kNever;
  if (!scheme.empty() && scheme != "always" && scheme != "first" && scheme != "never")
    throw DataError("{}: Metaspace has the unknown prepend_scheme \"{}\"", origin, scheme);
  if (!flag_field(part, "add_prefix_space", true, origin)) prepend = Prepend::kNever;
  const std::string sign = text_field(part, "replacement", "\u2581", origin);
  if (sign.empty()) throw DataError("{}: Metaspace has an empty replacement", origin);
  out.add(steps::metaspace(sign, prepend, flag_field(part, "split", true, origin)));
}

void add_step(const json& part, std::string_view origin, int depth, PreTokenizer& out);

void add_sequence(const json& part, std::string_view origin, int depth, PreTokenizer& out) {
  if (depth > 8) throw DataError("{}: pre-tokenizers are nested too deep", origin);
  for (const json& inner : list_field(part, "pretokenizers", origin))
    add_step(inner, origin, depth + 1, out);
}

void add_step(const json& part, std::string_view origin, int depth, PreTokenizer& out) {
  const std::string type = type_of(part);
  if (out.byte_level())
    throw DataError("{}: pre-tokenizer {} after ByteLevel is not supported", origin, type);
  if (type == "Sequence") return add_sequence(part, origin, depth, out);
  if (type == "ByteLevel") return add_byte_level(part, origin, out);
  if (type == "Metaspace") return add_metaspace(part, origin, out);
  using enum SplitBehavior;
  if (type == "Split") {
    return out.add(steps::cut_at(pattern_field(part, origin), behavior_field(part, origin),
                                 flag_field(part, "invert", false, origin)));
  }
  if (type == "Whitespace")
    return out.add(steps::cut_at(Pattern::regex("\\w+|(?:(?!\\w)\\S)+", origin), kRemoved, true));
  if (type == "WhitespaceSplit") return out.add(steps::cut_at(is_white_space, kRemoved));
  if (type == "Punctuation")
    return out.add(steps::cut_at(is_punctuation, behavior_field(part, origin)));
  if (type == "Digits") {
    const bool each = flag_field(part, "individual_digits", false, origin);
    return out.add(steps::cut_at(is_numeric, each ? kIsolated : kContiguous));
  }
  if (type == "BertPreTokenizer") {
    out.add(steps::cut_at(is_white_space, kRemoved));
    return out.add(steps::cut_at(is_punctuation, kIsolated));
  }
  if (type == "CharDelimiterSplit") {
    const std::string delimiter = text_field(part, "delimiter", "", origin);
    return out.add(steps::cut_at(Pattern::literal(delimiter), kRemoved, false));
  }
  refuse_type("pre-tokenizer", part, origin);
}

}  // namespace

PreTokenizer read_pre_tokenizer(const json& part, std::string_view origin) {
  PreTokenizer out;
  if (!part.is_null()) add_step(part, origin, 0, out);
  return out;
}

}  // namespace mm::text
