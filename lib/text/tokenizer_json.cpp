#include "lib/text/tokenizer_json.h"

#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/text/json_fields.h"
#include "lib/text/model_json.h"
#include "lib/text/pipeline_tokenizer.h"

namespace mm::text {
namespace {

// Not mm::Json: that keeps the order of keys and looks keys up one by one, which a vocabulary of
// 150,000 pieces cannot afford.
using nlohmann::json;

const json& part_of(const json& root, const char* key) {
  static const json kNull;
  const auto found = root.find(key);
  return found == root.end() ? kNull : *found;
}

AddedToken read_added_token(const json& token, std::string_view origin) {
  if (!token.is_object() || !token.contains("content") || !token.contains("id") ||
      !token["content"].is_string()) {
    throw DataError("{}: an added token lacks its content or id", origin);
  }
  AddedToken out;
  out.content = token["content"].get<std::string>();
  out.id = checked_id(token["id"], out.content, origin);
  out.special = flag_field(token, "special", false, origin);
  out.single_word = flag_field(token, "single_word", false, origin);
  out.lstrip = flag_field(token, "lstrip", false, origin);
  out.rstrip = flag_field(token, "rstrip", false, origin);
  out.normalized = flag_field(token, "normalized", !out.special, origin);
  return out;
}

std::vector<AddedToken> read_added_tokens(const json& list, std::string_view origin) {
  std::vector<AddedToken> out;
  if (list.is_null()) return out;
  if (!list.is_array()) throw DataError("{}: added_tokens is not a list", origin);
  for (const json& token : list) out.push_back(read_added_token(token, origin));
  return out;
}

std::unique_ptr<Tokenizer> read(const json& root, std::string_view origin,
                                const TokenizerOptions& options) {
  TokenizerParts parts;
  parts.added = read_added_tokens(part_of(root, "added_tokens"), origin);
  parts.normalizer = read_normalizer(part_of(root, "normalizer"), origin);
  parts.pre_tokenizer = read_pre_tokenizer(part_of(root, "pre_tokenizer"), origin);
  parts.wrapping = read_post_processor(part_of(root, "post_processor"), origin);
  parts.decoder = read_decoder(part_of(root, "decoder"), origin);
  find_usual_ids(parts);
  const json& model = part_of(root, "model");
  read_model(model, origin, parts);
  // Published CLIP files leave the ends of words to a wrapper around the tokenizer.
  const std::string suffix =
      model.is_object() ? text_field(model, "end_of_word_suffix", "", origin) : "";
  if (!suffix.empty() && type_of(part_of(root, "decoder")) == "ByteLevel")
    parts.decoder = word_end_decoder(suffix);
  return make_pipeline_tokenizer(std::move(parts), options);
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, std::string_view origin,
                                                const TokenizerOptions& options) {
  const json root = parse_limited(text, origin);
  if (!root.is_object()) throw DataError("{}: not a tokenizer.json: no object", origin);
  try {
    return read(root, origin, options);
  } catch (const json::exception& e) {  // a key that exists with another type than it should
    throw DataError("{}: not a tokenizer.json as expected: {}", origin, e.what());
  }
}

}  // namespace mm::text
