#pragma once
#include <memory>

#include "lib/text/vocabulary.h"

namespace mm::text {

/// How text becomes words: cut at white space, or by Metaspace, where a blank becomes U+2581 at the
/// front of the next word.
struct WordSplit {
  enum class Kind { kWhitespace, kMetaspace };
  /// Which texts get a U+2581 in front although no blank stands there.
  enum class Prepend { kFirst, kAlways, kNever };
  Kind kind = Kind::kWhitespace;
  Prepend prepend = Prepend::kAlways;
};

/// Whole words only; a word that is no piece becomes unk. For tests and toy models. encode throws
/// DataError for an unknown word if the file names no unk_token.
std::unique_ptr<Tokenizer> make_word_level(TokenizerJsonParts parts, WordSplit split);

}  // namespace mm::text
