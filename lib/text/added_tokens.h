#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/aligned_text.h"
#include "lib/text/function_ref.h"
#include "lib/text/normalizer.h"

namespace mm::text {

/// A token that is found in a text as it is, before any model sees it.
struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool special = false;      ///< a control mark, not text; see AddedTokens
  bool single_word = false;  ///< only where no letter or digit touches it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< and after it
  bool normalized = false;   ///< is looked for after normalisation
};

/// Finds added tokens: the leftmost match, the longest of those. Special ones count only where a
/// text is meant to be parsed for marks, the others are pieces of the vocabulary like any other.
/// Immutable after loading, thread-safe.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// `normalizer` is applied to the contents of the normalised ones.
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer);

  const std::vector<AddedToken>& tokens() const { return tokens_; }

  /// A part of the text: a token, or (nullptr) text between tokens, never empty.
  using Part = FunctionRef<void(TextView part, const AddedToken* token)>;
  /// Cuts a text at the tokens that are looked for before normalisation (`normalized` false) or
  /// after it. `special`: at special tokens too.
  void cut(TextView text, bool normalized, bool special, Part part) const;

 private:
  struct Entry {
    std::string content;  ///< as looked for
    size_t token = 0;     ///< index into tokens_
  };
  struct Match {
    size_t begin = 0, end = 0;
    const AddedToken* token = nullptr;
  };
  /// By first byte, longest first.
  using Table = std::array<std::vector<Entry>, 256>;
  Match match_at(const Table& table, std::string_view text, size_t at, bool special) const;

  std::vector<AddedToken> tokens_;
  std::vector<Table> tables_;  ///< of those before normalisation and those after it
  std::array<bool, 2> empty_ = {true, true};
};

}  // namespace mm::text
