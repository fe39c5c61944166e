#include "lib/text/tokenizer_json.h"

#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/text/byte_alphabet.h"
#include "lib/text/byte_level_bpe.h"
#include "lib/text/vocabulary.h"
#include "lib/text/word_level.h"

namespace mm::text {
namespace {

// Not mm::Json: that keeps the order of keys and looks keys up one by one, which a vocabulary of
// 150,000 pieces cannot afford.
using nlohmann::json;

constexpr int kMaxDepth = 64;

json parse(std::string_view text, std::string_view origin) {
  const auto guard = [&](int depth, json::parse_event_t, json&) {
    if (depth > kMaxDepth) throw DataError("{}: nested deeper than {}", origin, kMaxDepth);
    return true;
  };
  try {
    return json::parse(text, guard);
  } catch (const json::exception& e) {
    throw DataError("{}: not a tokenizer.json: {}", origin, e.what());
  }
}

std::string type_of(const json& value) {
  return value.is_object() ? value.value("type", std::string("?")) : "none";
}

bool is_set(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null() && *found != false && *found != "";
}

// A merge is ["a", "b"], or "a b" in older files.
std::pair<std::string, std::string> merge_pair(const json& merge, std::string_view origin) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  const std::string text = merge.is_string() ? merge.get<std::string>() : "";
  const size_t blank = text.find(' ');
  if (blank == std::string::npos) throw DataError("{}: a merge is not a pair of pieces", origin);
  return {text.substr(0, blank), text.substr(blank + 1)};
}

MergeTable read_merges(const json& model, const Vocabulary& vocabulary, std::string_view origin) {
  const auto merges = model.find("merges");
  if (merges == model.end() || !merges->is_array())
    throw DataError("{}: model.merges is not a list", origin);
  MergeTable table;
  int32_t rank = 0;
  for (const json& merge : *merges) {
    const auto [left, right] = merge_pair(merge, origin);
    const auto a = spelling_to_bytes(left), b = spelling_to_bytes(right);
    const auto find = [&](const std::optional<std::string>& piece) {
      return piece ? vocabulary.find(*piece) : std::nullopt;
    };
    const auto left_id = find(a), right_id = find(b);
    const auto joined = left_id && right_id ? vocabulary.find(*a + *b) : std::nullopt;
    if (!joined)
      throw DataError("{}: merge {} (\"{}\" + \"{}\") names a piece that the vocabulary lacks",
                      origin, rank, left, right);
    table.add(*left_id, *right_id, {rank++, *joined});
  }
  return table;
}

SplitPattern read_byte_level(const json& pre, std::string_view origin) {
  if (is_set(pre, "add_prefix_space"))
    throw DataError("{}: ByteLevel with add_prefix_space is not supported", origin);
  return pre.value("use_regex", true) ? SplitPattern::gpt2() : SplitPattern::whole();
}

SplitPattern read_pre_tokenizer(const json& pre, std::string_view origin) {
  if (type_of(pre) == "ByteLevel") return read_byte_level(pre, origin);
  const json steps =
      type_of(pre) == "Sequence" ? pre.value("pretokenizers", json::array()) : json::array();
  const bool known =
      steps.size() == 2 && type_of(steps[0]) == "Split" && type_of(steps[1]) == "ByteLevel";
  if (!known)
    throw DataError(
        "{}: pre-tokenizer {} is not supported; expected ByteLevel, or Split then ByteLevel",
        origin, type_of(pre));
  const json& split = steps[0];
  if (split.value("behavior", "") != "Isolated" || is_set(split, "invert") ||
      is_set(steps[1], "add_prefix_space") || steps[1].value("use_regex", true)) {
    throw DataError(
        "{}: only Split with behavior Isolated, then ByteLevel without its own pattern, is "
        "supported",
        origin);
  }
  return SplitPattern::known(split.value("pattern", json::object()).value("Regex", std::string()),
                             origin);
}

std::unique_ptr<Tokenizer> read_bpe(const json& root, std::string_view origin,
                                    const TokenizerOptions& options) {
  const json& model = root["model"];
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                          "byte_fallback"}) {
    if (is_set(model, key)) throw DataError("{}: BPE with {} is not supported", origin, key);
  }
  const std::string normaliser = root.contains("normalizer") ? type_of(root["normalizer"]) : "none";
  if (normaliser != "none" && normaliser != "NFC")
    throw DataError("{}: normaliser {} is not supported; expected none or NFC", origin, normaliser);
  ByteLevelBpeParts bpe;
  bpe.pattern = read_pre_tokenizer(root.value("pre_tokenizer", json()), origin);
  bpe.nfc = normaliser == "NFC";
  bpe.ignore_merges = is_set(model, "ignore_merges");
  TokenizerJsonParts parts = read_parts(root, origin, true, options);
  bpe.merges = read_merges(model, parts.vocabulary, origin);
  return make_byte_level_bpe(std::move(parts), std::move(bpe));
}

WordSplit read_word_split(const json& pre, std::string_view origin) {
  WordSplit split;
  const std::string type = type_of(pre);
  if (type == "WhitespaceSplit") return split;
  const std::string prepend = pre.is_object() ? pre.value("prepend_scheme", "always") : "";
  if (type != "Metaspace" || !pre.value("split", true) ||
      pre.value("replacement", "\u2581") != "\u2581") {
    throw DataError(
        "{}: pre-tokenizer {} is not supported with WordLevel; expected WhitespaceSplit, or "
        "Metaspace that splits",
        origin, type);
  }
  split.kind = WordSplit::Kind::kMetaspace;
  if (prepend == "first") split.prepend = WordSplit::Prepend::kFirst;
  if (prepend == "never") split.prepend = WordSplit::Prepend::kNever;
  return split;
}

std::unique_ptr<Tokenizer> read_word_level(const json& root, std::string_view origin,
                                           const TokenizerOptions& options) {
  if (is_set(root, "normalizer"))
    throw DataError("{}: WordLevel with a normaliser is not supported", origin);
  const WordSplit split = read_word_split(root.value("pre_tokenizer", json()), origin);
  return make_word_level(read_parts(root, origin, false, options), split);
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, std::string_view origin,
                                                const TokenizerOptions& options) {
  const json root = parse(text, origin);
  std::string type = "none";
  try {
    if (root.is_object() && root.contains("model")) type = type_of(root["model"]);
    if (type == "BPE") return read_bpe(root, origin, options);
    if (type == "WordLevel") return read_word_level(root, origin, options);
  } catch (const json::exception& e) {  // a key that exists with another type than it should
    throw DataError("{}: not a tokenizer.json as expected: {}", origin, e.what());
  }
  throw DataError("{}: tokenizer.json with model {} is not supported; expected BPE or WordLevel",
                  origin, type);
}

}  // namespace mm::text
