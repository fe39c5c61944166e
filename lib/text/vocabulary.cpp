#include "lib/text/vocabulary.h"

#include "lib/text/byte_alphabet.h"

namespace mm::text {

bool Vocabulary::put(Ids& ids, std::string piece, int32_t id) {
  if (static_cast<size_t>(id) >= pieces_.size()) pieces_.resize(static_cast<size_t>(id) + 1);
  if (pieces_[id] || !ids.try_emplace(piece, id).second) return false;
  pieces_[id] = std::move(piece);
  return true;
}

bool Vocabulary::add(std::string_view spelling, int32_t id) {
  if (!byte_level_) return put(ids_, std::string(spelling), id);
  auto bytes = spelling_to_bytes(spelling);
  return bytes ? put(ids_, std::move(*bytes), id) : put(odd_, std::string(spelling), id);
}

bool Vocabulary::add_bytes(std::string bytes, int32_t id) {
  return put(ids_, std::move(bytes), id);
}

std::optional<int32_t> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<int32_t> Vocabulary::find_spelling(std::string_view spelling) const {
  if (!byte_level_) return find(spelling);
  const auto bytes = spelling_to_bytes(spelling);
  if (bytes) return find(*bytes);
  const auto found = odd_.find(spelling);
  if (found == odd_.end()) return std::nullopt;
  return found->second;
}

const std::string* Vocabulary::piece(int32_t id) const {
  return id >= 0 && id < size() && pieces_[id] ? &*pieces_[id] : nullptr;
}

std::string Vocabulary::spelling(int32_t id) const {
  const std::string* found = piece(id);
  if (found == nullptr) return {};
  if (!byte_level_ || odd_.contains(*found)) return *found;
  return bytes_to_spelling(*found);
}

}  // namespace mm::text
