#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/text/tokenizer.h"

namespace mm::text {

/// Pieces and their ids. Pieces are kept as the text or bytes they stand for.
class Vocabulary {
 public:
  /// False if the piece or the id is taken. `id` >= 0.
  bool add(std::string piece, int32_t id);
  std::optional<int32_t> find(std::string_view piece) const;
  /// nullptr if there is none.
  const std::string* piece(int32_t id) const;
  /// One more than the largest id.
  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::vector<std::optional<std::string>> pieces_;
};

/// What every tokenizer.json has, whatever its model.
struct TokenizerJsonParts {
  Vocabulary vocabulary;    ///< of the model, spelled as in the file, or as bytes if `byte_level`
  std::vector<Mark> marks;  ///< added tokens and extra marks
  int32_t vocab_size = 0;   ///< with marks
  int32_t bos = -1, eos = -1, unk = -1, pad = -1;
  bool adds_bos = false;
};

/// Reads "model.vocab", "added_tokens" and "post_processor". Throws DataError with `origin`.
TokenizerJsonParts read_parts(const nlohmann::json& root, std::string_view origin, bool byte_level,
                              const TokenizerOptions& options);

/// Common half of the tokenizers that come from a tokenizer.json.
class JsonTokenizer : public Tokenizer {
 public:
  explicit JsonTokenizer(TokenizerJsonParts parts);
  int32_t vocab_size() const override { return parts_.vocab_size; }
  int32_t bos_id() const override { return parts_.bos; }
  int32_t eos_id() const override { return parts_.eos; }
  int32_t unk_id() const override { return parts_.unk; }
  int32_t pad_id() const override { return parts_.pad; }
  bool adds_bos() const override { return parts_.adds_bos; }

 protected:
  const Vocabulary& vocabulary() const { return parts_.vocabulary; }
  /// nullptr if `id` is no mark.
  const std::string* mark_text(int32_t id) const;
  std::optional<int32_t> mark_id(std::string_view text) const;

 private:
  TokenizerJsonParts parts_;
  std::unordered_map<int32_t, std::string> mark_texts_;
};

}  // namespace mm::text
