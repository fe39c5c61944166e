#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mm::text {

/// Pieces and their ids. A byte-level vocabulary takes pieces as files spell them (byte_alphabet.h)
/// and keeps the bytes they stand for; a piece that is not spelled so stands for no bytes, but has
/// its id and text.
class Vocabulary {
 public:
  explicit Vocabulary(bool byte_level = false) : byte_level_(byte_level) {}

  bool byte_level() const { return byte_level_; }
  /// `spelling` as in a file. False if the piece or the id is taken. `id` >= 0.
  bool add(std::string_view spelling, int32_t id);
  /// As `add`, with the bytes of a byte-level vocabulary.
  bool add_bytes(std::string bytes, int32_t id);

  /// By text; in a byte-level vocabulary by bytes.
  std::optional<int32_t> find(std::string_view piece) const;
  /// By spelling.
  std::optional<int32_t> find_spelling(std::string_view spelling) const;
  /// Text or bytes; nullptr if there is no such piece.
  const std::string* piece(int32_t id) const;
  std::string spelling(int32_t id) const;
  /// One more than the largest id.
  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  size_t count() const { return ids_.size() + odd_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Ids = std::unordered_map<std::string, int32_t, Hash, std::equal_to<>>;
  bool put(Ids& ids, std::string piece, int32_t id);

  bool byte_level_;
  Ids ids_, odd_;  ///< odd: in a byte-level vocabulary, what is no spelling of bytes
  std::vector<std::optional<std::string>> pieces_;
};

}  // namespace mm::text
