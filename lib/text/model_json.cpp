#include "lib/text/model_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/text/json_fields.h"
#include "lib/text/utf8.h"

namespace mm::text {
namespace {

using nlohmann::json;

// Ids may have gaps, but a small file must not ask for a huge table.
constexpr int64_t kMaxId = 16'000'000;

void check_gaps(const Vocabulary& vocabulary, std::string_view origin) {
  if (vocabulary.size() > 4 * static_cast<int64_t>(vocabulary.count()) + 65536) {
    throw DataError("{}: {} pieces but ids up to {}", origin, vocabulary.count(),
                    vocabulary.size() - 1);
  }
}

void read_vocabulary(const json& model, std::string_view origin, Vocabulary& out) {
  const auto vocab = model.find("vocab");
  if (vocab == model.end() || !vocab->is_object() || vocab->empty())
    throw DataError("{}: model.vocab is not a table of pieces and ids", origin);
  for (const auto& [spelling, value] : vocab->items()) {
    const int32_t id = checked_id(value, spelling, origin);
    if (!out.add(spelling, id)) throw DataError("{}: two pieces have the id {}", origin, id);
  }
  check_gaps(out, origin);
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

MergeTable read_merges(const json& model, const Vocabulary& vocabulary, std::string_view prefix,
                       std::string_view origin) {
  MergeTable table;
  int32_t rank = 0;
  for (const json& merge : list_field(model, "merges", origin)) {
    const auto [left, right] = merge_pair(merge, origin);
    const auto left_id = vocabulary.find_spelling(left), right_id = vocabulary.find_spelling(right);
    const size_t skip = !prefix.empty() && right.starts_with(prefix) ? prefix.size() : 0;
    const auto joined = vocabulary.find_spelling(left + right.substr(skip));
    if (!left_id || !right_id || !joined)
      throw DataError("{}: merge {} (\"{}\" + \"{}\") names a piece that the vocabulary lacks",
                      origin, rank, left, right);
    table.add(*left_id, *right_id, {rank++, *joined});
  }
  return table;
}

int32_t read_unk(const json& model, const TokenizerParts& parts, std::string_view origin) {
  const std::string name = text_field(model, "unk_token", "", origin);
  if (name.empty()) return -1;
  if (const auto id = parts.vocabulary->find_spelling(name)) return *id;
  for (const AddedToken& token : parts.added) {
    if (token.content == name) return token.id;
  }
  throw DataError("{}: the unk_token \"{}\" is no piece", origin, name);
}

constexpr std::string_view kSign = "\u2581";

// No piece has the sign of a blank after another character, so no merge reaches over such a place:
// words may be cut there, and then cached.
bool words_can_be_cut(const Vocabulary& vocabulary, const BpeOptions& options) {
  if (vocabulary.byte_level() || options.ignore_merges || !options.prefix.empty() ||
      !options.suffix.empty() || !vocabulary.find(kSign))
    return false;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.piece(id) == nullptr) continue;
    std::string_view piece = *vocabulary.piece(id);
    while (piece.starts_with(kSign)) piece.remove_prefix(kSign.size());
    if (piece.find(kSign) != std::string_view::npos) return false;
  }
  return true;
}

void cut_before_signs(TextView piece, bool, PreTokenizer::Sink out) {
  size_t begin = 0;
  for (size_t at = piece.text.find(kSign, 1); at != std::string_view::npos;
       at = piece.text.find(kSign, at + kSign.size())) {
    if (piece.text.substr(0, at).ends_with(kSign)) continue;
    out(piece.part(begin, at));
    begin = at;
  }
  out(piece.part(begin, piece.text.size()));
}

void read_bpe(const json& model, std::string_view origin, TokenizerParts& parts) {
  const auto dropout = model.find("dropout");
  if (dropout != model.end() && !dropout->is_null() && *dropout != 0.0)
    throw DataError("{}: BPE with dropout is not supported", origin);
  read_vocabulary(model, origin, *parts.vocabulary);
  BpeOptions bpe;
  bpe.prefix = text_field(model, "continuing_subword_prefix", "", origin);
  bpe.suffix = text_field(model, "end_of_word_suffix", "", origin);
  bpe.fuse_unk = flag_field(model, "fuse_unk", false, origin);
  bpe.byte_fallback = flag_field(model, "byte_fallback", false, origin);
  bpe.ignore_merges = flag_field(model, "ignore_merges", false, origin);
  bpe.unk = read_unk(model, parts, origin);
  bpe.merges = read_merges(model, *parts.vocabulary, bpe.prefix, origin);
  if (parts.vocabulary->byte_level() && (bpe.byte_fallback || !bpe.prefix.empty()))
    throw DataError("{}: byte-level BPE with {} is not supported", origin,
                    bpe.byte_fallback ? "byte_fallback" : "continuing_subword_prefix");
  parts.unk = bpe.unk;
  if (words_can_be_cut(*parts.vocabulary, bpe)) parts.pre_tokenizer.add(cut_before_signs);
  parts.model = make_bpe(*parts.vocabulary, std::move(bpe));
}

void read_word_piece(const json& model, std::string_view origin, TokenizerParts& parts) {
  read_vocabulary(model, origin, *parts.vocabulary);
  WordPieceOptions options;
  options.prefix = text_field(model, "continuing_subword_prefix", "##", origin);
  options.unk = parts.unk = read_unk(model, parts, origin);
  const auto limit = model.find("max_input_chars_per_word");
  if (limit != model.end() && limit->is_number_unsigned())
    options.max_characters = limit->get<size_t>();
  parts.model = make_word_piece(*parts.vocabulary, std::move(options));
}

void read_unigram(const json& model, std::string_view origin, TokenizerParts& parts) {
  UnigramOptions options;
  for (const json& row : list_field(model, "vocab", origin)) {
    if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_number() ||
        !std::isfinite(row[1].get<double>()))
      throw DataError("{}: a row of model.vocab is not a piece and its score", origin);
    const auto id = static_cast<int32_t>(options.scores.size());
    const auto piece = row[0].get<std::string>();
    if (!parts.vocabulary->add(piece, id))
      throw DataError("{}: the piece \"{}\" is there twice", origin, piece.substr(0, 80));
    options.scores.push_back(row[1].get<double>());
  }
  if (options.scores.empty()) throw DataError("{}: model.vocab is empty", origin);
  const auto unk = model.find("unk_id");
  if (unk != model.end() && !unk->is_null()) {
    options.unk = parts.unk = checked_id(*unk, "unk", origin);
    if (options.unk >= parts.vocabulary->size())
      throw DataError("{}: unk_id {} is no piece", origin, options.unk);
  }
  options.byte_fallback = flag_field(model, "byte_fallback", false, origin);
  parts.model = make_unigram(*parts.vocabulary, std::move(options));
}

// Files of before 2020 name no type; what they hold tells.
std::string model_type(const json& model) {
  if (!model.is_object()) return "none";
  if (model.contains("type")) return type_of(model);
  if (model.contains("merges")) return "BPE";
  return model.contains("continuing_subword_prefix") ? "WordPiece" : "?";
}

}  // namespace

int32_t checked_id(const json& value, std::string_view piece, std::string_view origin) {
  const bool number = value.is_number_integer() || value.is_number_unsigned();
  const int64_t id = number ? value.get<int64_t>() : -1;
  if (id < 0 || id > kMaxId)
    throw DataError("{}: the id of piece \"{}\" is not between 0 and {}", origin,
                    piece.substr(0, 80), kMaxId);
  return static_cast<int32_t>(id);
}

void read_model(const json& model, std::string_view origin, TokenizerParts& parts) {
  const std::string type = model_type(model);
  const bool byte_level = parts.pre_tokenizer.byte_level();
  parts.vocabulary = std::make_unique<Vocabulary>(byte_level);
  if (type == "BPE") return read_bpe(model, origin, parts);
  if (type == "Unigram") {
    if (byte_level) throw DataError("{}: byte-level Unigram is not supported", origin);
    return read_unigram(model, origin, parts);
  }
  if (type == "WordPiece" || type == "WordLevel") {
    if (byte_level) throw DataError("{}: byte-level {} is not supported", origin, type);
    if (type == "WordPiece") return read_word_piece(model, origin, parts);
    read_vocabulary(model, origin, *parts.vocabulary);
    parts.unk = read_unk(model, parts, origin);
    parts.model = make_word_level(*parts.vocabulary, parts.unk);
    return;
  }
  throw DataError("{}: model {} is not supported; expected BPE, WordLevel, WordPiece or Unigram",
                  origin, type);
}

}  // namespace mm::text
