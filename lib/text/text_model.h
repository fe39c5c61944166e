#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/merges.h"

namespace mm::text {

class Vocabulary;

/// Room that a model works in, to be reused from word to word by one thread.
struct ModelRoom {
  MergeRoom merge;
  std::string piece;
  struct Arrival {
    double score = 0;
    int32_t begin = -1;  ///< -1: not reached
    int32_t id = -1;
  };
  std::vector<Arrival> arrivals;  ///< unigram: the best way to each byte
};

/// The part of a tokenizer that gives words their ids. Immutable, thread-safe.
class TextModel {
 public:
  virtual ~TextModel() = default;
  /// Appends the ids of `word` and the bytes of it at which they begin. Throws DataError if the
  /// word has no ids in this vocabulary.
  virtual void encode(std::string_view word, ModelRoom& room, std::vector<Symbol>& out) const = 0;
};

struct BpeOptions {
  MergeTable merges;
  int32_t unk = -1;            ///< -1: unknown characters vanish (byte level: are an error)
  bool fuse_unk = false;       ///< neighbouring unknown characters become one unk
  bool byte_fallback = false;  ///< unknown characters become pieces <0x00>..<0xFF> if all are there
  bool ignore_merges = false;  ///< a word that is a piece is taken whole
  std::string prefix, suffix;  ///< of pieces that do not begin a word, and of those that end one
};
/// Byte-pair encoding, of bytes if the vocabulary is byte-level, else of characters. `vocabulary`
/// must outlive the model; so for the others.
std::unique_ptr<TextModel> make_bpe(const Vocabulary& vocabulary, BpeOptions options);

/// Words are pieces; others become `unk` (-1: an error).
std::unique_ptr<TextModel> make_word_level(const Vocabulary& vocabulary, int32_t unk);

struct WordPieceOptions {
  int32_t unk = -1;
  std::string prefix = "##";  ///< of pieces that do not begin a word
  size_t max_characters = 100;
};
/// The longest piece first, again and again; a word that does not work out, or is longer than
/// `max_characters`, becomes `unk` (-1: an error). O(bytes) a piece.
std::unique_ptr<TextModel> make_word_piece(const Vocabulary& vocabulary, WordPieceOptions options);

struct UnigramOptions {
  std::vector<double> scores;  ///< by id: log probabilities
  int32_t unk = -1;
  bool byte_fallback = false;
};
/// The segmentation with the highest sum of scores (Viterbi); of equal ones the one whose pieces,
/// from the end, came first. A character without a piece costs 10 more than the worst piece;
/// neighbouring ones become one unk.
std::unique_ptr<TextModel> make_unigram(const Vocabulary& vocabulary, UnigramOptions options);

/// Id of the piece <0xNN> for each byte, -1 where there is none.
std::vector<int32_t> byte_pieces(const Vocabulary& vocabulary);
/// Throws DataError: a word with no ids, and no unk to stand for it.
[[noreturn]] void refuse_word(std::string_view word);

}  // namespace mm::text
