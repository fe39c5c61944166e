#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mm::text {

/// The character map that SentencePiece compiles into its models and tokenizer.json files carry as
/// "precompiled_charsmap": a double-array trie (darts-clone: 32-bit units of offset, leaf flag and
/// label) from texts to places in a list of replacements, each ended by a NUL. Treats every file as
/// hostile.
class CharacterMap {
 public:
  /// `bytes`: a 32-bit length of the trie, the trie, the replacements. Nothing, with `why` set, if
  /// the parts do not fit together.
  static std::optional<CharacterMap> parse(std::string_view bytes, std::string& why);

  /// Every state that can be reached lies in the array, and every leaf points to a replacement.
  bool is_safe() const;
  /// The replacement of the shortest key that begins `text`, or nothing. Only after is_safe().
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace mm::text
