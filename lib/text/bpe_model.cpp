#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/error.h"
#include "lib/text/text_model.h"
#include "lib/text/utf8.h"
#include "lib/text/vocabulary.h"

namespace mm::text {
namespace {

class ByteBpe final : public TextModel {
 public:
  ByteBpe(const Vocabulary& vocabulary, BpeOptions options)
      : vocabulary_(vocabulary), options_(std::move(options)) {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string piece(1, static_cast<char>(byte));
      ids_[byte] = vocabulary.find(piece).value_or(options_.unk);
      last_ids_[byte] = vocabulary.find(piece + options_.suffix).value_or(options_.unk);
    }
  }

  void encode(std::string_view word, ModelRoom& room, std::vector<Symbol>& out) const override {
    if (options_.ignore_merges) {
      if (const auto whole = vocabulary_.find(word)) return out.push_back({*whole, 0});
    }
    const size_t first = out.size();
    for (uint32_t i = 0; i < word.size(); ++i) {
      const auto byte = static_cast<unsigned char>(word[i]);
      const int32_t id = i + 1 == word.size() ? last_ids_[byte] : ids_[byte];
      if (id < 0) throw DataError("byte 0x{:02x} has no piece in this tokenizer", byte);
      out.push_back({id, i});
    }
    merge_symbols(out, first, options_.merges, room.merge);
  }

 private:
  const Vocabulary& vocabulary_;
  BpeOptions options_;
  std::array<int32_t, 256> ids_{}, last_ids_{};
};

class CharacterBpe final : public TextModel {
 public:
  CharacterBpe(const Vocabulary& vocabulary, BpeOptions options)
      : vocabulary_(vocabulary), options_(std::move(options)) {
    if (options_.byte_fallback) bytes_ = byte_pieces(vocabulary);
  }

  void encode(std::string_view word, ModelRoom& room, std::vector<Symbol>& out) const override {
    if (options_.ignore_merges) {
      if (const auto whole = vocabulary_.find(word)) return out.push_back({*whole, 0});
    }
    const size_t first = out.size();
    bool after_unk = false;
    for (size_t at = 0; at < word.size();) {
      const size_t length = decode_utf8(word, at).length_bytes;
      room.piece.assign(at > 0 ? options_.prefix : std::string());
      room.piece += word.substr(at, length);
      if (at + length == word.size()) room.piece += options_.suffix;
      after_unk = append(room.piece, static_cast<uint32_t>(at), after_unk, out);
      at += length;
    }
    merge_symbols(out, first, options_.merges, room.merge);
  }

 private:
  // True if the character became an unk.
  bool append(const std::string& piece, uint32_t at, bool after_unk,
              std::vector<Symbol>& out) const {
    if (const auto id = vocabulary_.find(piece)) {
      out.push_back({*id, at});
      return false;
    }
    const auto id_of = [&](char c) { return bytes_[static_cast<unsigned char>(c)]; };
    if (options_.byte_fallback &&
        std::all_of(piece.begin(), piece.end(), [&](char c) { return id_of(c) >= 0; })) {
      for (const char c : piece) out.push_back({id_of(c), at++});
      return false;
    }
    if (options_.unk >= 0 && !(after_unk && options_.fuse_unk)) out.push_back({options_.unk, at});
    return options_.unk >= 0;
  }

  const Vocabulary& vocabulary_;
  BpeOptions options_;
  std::vector<int32_t> bytes_;
};

}  // namespace

std::vector<int32_t> byte_pieces(const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  for (int byte = 0; byte < 256; ++byte)
    ids.push_back(vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1));
  return ids;
}

void refuse_word(std::string_view word) {
  throw DataError("the word \"{}\" is unknown and the tokenizer has no unk_token",
                  word.substr(0, 80));
}

std::unique_ptr<TextModel> make_bpe(const Vocabulary& vocabulary, BpeOptions options) {
  if (vocabulary.byte_level()) return std::make_unique<ByteBpe>(vocabulary, std::move(options));
  return std::make_unique<CharacterBpe>(vocabulary, std::move(options));
}

}  // namespace mm::text
