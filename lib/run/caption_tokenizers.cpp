#include "lib/run/caption_tokenizers.h"

#include <fmt/format.h>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/data/json_fields.h"
#include "lib/run/caption_shape.h"
#include "lib/text/special_tokens.h"

namespace fs = std::filesystem;

namespace mm::run {
namespace {

/// Where the tokenizer of an encoder may lie: diffusers' pipelines have it beside the encoder.
std::vector<fs::path> tokenizer_places(const fs::path& encoder) {
  std::vector<fs::path> places{encoder};
  constexpr std::string_view kEncoder = "text_encoder";
  const std::string name = encoder.filename().string();
  if (name.starts_with(kEncoder))
    places.push_back(encoder.parent_path() / ("tokenizer" + name.substr(kEncoder.size())));
  return places;
}

/// Of what a data set packed with it holds.
std::string hash_of(const fs::path& tokenizer) {
  return xxh3_128_hex(text::read_tokenizer(tokenizer));
}

/// Whether this file, which is there, has this content. A vocab.json beside another tokenizer may
/// be of a kind that stands for no tokenizer here.
bool is_of_hash(const fs::path& file, const std::string& hash) {
  try {
    return hash_of(file) == hash;
  } catch (const DataError&) {
    if (text::find_tokenizer(file.parent_path()) == file) throw;
    return false;
  }
}

/// Whether the encoder has a tokenizer file of this content.
bool has_tokenizer(const fs::path& encoder, const std::string& hash) {
  for (const fs::path& place : tokenizer_places(encoder)) {
    for (const char* name : {"spiece.model", "tokenizer.model", "tokenizer.json", "vocab.txt",
                             "sentencepiece.bpe.model", "vocab.json"}) {
      if (fs::is_regular_file(place / name) && is_of_hash(place / name, hash)) return true;
    }
  }
  return false;
}

fs::path own_tokenizer(const fs::path& encoder) {
  for (const fs::path& place : tokenizer_places(encoder)) {
    if (const auto found = text::find_tokenizer(place)) return *found;
  }
  throw DataError(
      "{}: no tokenizer.json, SentencePiece model or vocab.json and merges.txt in it to write "
      "captions in its ids",
      encoder.string());
}

/// What a CLIP encoder's captions are filled up with: pad_token of its tokenizer's settings, since
/// published config.json files name an id that is none of padding; `otherwise` without one.
int64_t padding_id(const fs::path& encoder, const text::Tokenizer& tokenizer, int64_t otherwise) {
  for (const fs::path& place : tokenizer_places(encoder)) {
    Json pad = text::read_special_tokens(place).of("pad_token");
    if (pad.is_object()) pad = pad.value("content", Json());
    if (!pad.is_string()) continue;
    const auto id = tokenizer.piece_to_id(pad.get<std::string>());
    if (!id)
      throw DataError("{}: pad_token {} is no piece of the tokenizer", place.string(), pad.dump());
    return *id;
  }
  return otherwise;
}

}  // namespace

Json to_json(const std::vector<CaptionWriting>& writing) {
  Json list = Json::array();
  for (const CaptionWriting& one : writing)
    list.push_back({{"tokenizer", one.tokenizer}, {"length", one.length}, {"pad_id", one.pad_id}});
  return list;
}

std::vector<CaptionWriting> caption_writing_from(const Json& json, const std::string& origin) {
  if (!json.is_array()) throw DataError("{}: caption_writing is no list", origin);
  std::vector<CaptionWriting> writing;
  for (const Json& one : json) {
    const data::JsonFields fields(one, origin);
    writing.push_back({.tokenizer = fields.text("tokenizer"),
                       .length = fields.integer<int64_t>("length"),
                       .pad_id = fields.integer<int64_t>("pad_id", -1)});
  }
  return writing;
}

std::string writing_difference(const std::vector<CaptionWriting>& before,
                               const std::vector<CaptionWriting>& now) {
  if (before.empty() || now.empty() || before == now) return "";
  if (before.size() != now.size())
    return fmt::format("{} text encoders, before {}", now.size(), before.size());
  for (size_t i = 0; i < now.size(); ++i) {
    const CaptionWriting &then = before[i], &here = now[i];
    if (then.length != here.length)
      return fmt::format("text encoder {} reads captions of {} tokens, before {} (0: their own)",
                         i + 1, here.length, then.length);
    if (then.pad_id != here.pad_id)
      return fmt::format("text encoder {} fills captions up with id {}, before with {}", i + 1,
                         here.pad_id, then.pad_id);
    if (then.tokenizer != here.tokenizer)
      return fmt::format("text encoder {} has another tokenizer than before", i + 1);
  }
  return "";
}

CaptionTokenizers open_caption_tokenizers(const std::vector<fs::path>& directories, int64_t padding,
                                          const fs::path& tokenizer) {
  const std::string hash = hash_of(tokenizer);
  CaptionTokenizers out{.given = text::load_tokenizer(tokenizer)};
  bool known = false;
  for (const fs::path& directory : directories) {
    const model::TextEncoder encoder = declare_encoder(directory).encoder;
    const bool same = has_tokenizer(directory, hash);
    known = known || same;
    CaptionWriting writing{.length = encoder.pads_seen ? encoder.max_length : padding};
    std::unique_ptr<const text::Tokenizer> own;
    if (!same && directories.size() > 1) {
      const fs::path file = own_tokenizer(directory);
      own = text::load_tokenizer(file, {.extra_marks = {}});
      writing.tokenizer = hash_of(file);
    }
    if (is_clip(encoder))
      writing.pad_id = padding_id(directory, own ? *own : *out.given, encoder.pad_id);
    else if (padding > 0)
      writing.pad_id = encoder.pad_id;
    out.own.push_back(std::move(own));
    out.writing.push_back(writing);
  }
  if (!known)
    throw DataError(
        "{}: none of its tokenizer files is that of the data set ({}); pack the set with the text "
        "encoder's own",
        directories.back().string(), tokenizer.filename().string());
  return out;
}

}  // namespace mm::run
