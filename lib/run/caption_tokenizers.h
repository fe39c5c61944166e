#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/text/tokenizer.h"

namespace mm::run {

/// How a text encoder's captions are written, besides its weights: other ids, other states.
struct CaptionWriting {
  std::string
      tokenizer;        ///< hash of its own tokenizer's file; empty: it takes the ids as they come
  int64_t length = 0;   ///< tokens of every caption, 0: its own
  int64_t pad_id = -1;  ///< what fills it up; -1 where nothing does
  bool operator==(const CaptionWriting&) const = default;
};
Json to_json(const std::vector<CaptionWriting>& writing);
/// Throws DataError naming `origin`.
std::vector<CaptionWriting> caption_writing_from(const Json& json, const std::string& origin);
/// What differs, in words, "" for nothing: "text encoder 1 fills captions up with id 0, before with
/// 49407". Empty lists stand for what was made before this was recorded: nothing differs from them.
std::string writing_difference(const std::vector<CaptionWriting>& before,
                               const std::vector<CaptionWriting>& now);

/// The tokenizers of encoders that read a caption together, as CaptionEncoders describes them.
struct CaptionTokenizers {
  std::unique_ptr<const text::Tokenizer> given;             ///< of the ids that come
  std::vector<std::unique_ptr<const text::Tokenizer>> own;  ///< by encoder; null: takes those ids
  std::vector<CaptionWriting> writing;                      ///< by encoder
};
/// Reads config.json and tokenizer files, no weights. Throws as CaptionEncoders does.
CaptionTokenizers open_caption_tokenizers(const std::vector<std::filesystem::path>& directories,
                                          int64_t padding, const std::filesystem::path& tokenizer);

}  // namespace mm::run
