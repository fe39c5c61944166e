#include "lib/text/character_map.h"

#include <cstring>

namespace mm::text {
namespace {

size_t offset(uint32_t unit) { return static_cast<size_t>(unit >> 10) << ((unit & 1U << 9) >> 6); }
uint32_t label(uint32_t unit) { return unit & (1U << 31 | 0xFF); }
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value(uint32_t unit) { return unit & 0x7FFFFFFF; }

}  // namespace

std::optional<CharacterMap> CharacterMap::parse(std::string_view bytes, std::string& why) {
  uint32_t trie_bytes = 0;
  if (bytes.size() < 4) {
    why = "has a cut normaliser";
    return std::nullopt;
  }
  std::memcpy(&trie_bytes, bytes.data(), 4);
  const std::string_view rest = bytes.substr(4);
  if (trie_bytes > rest.size() || trie_bytes % 4 != 0) {
    why = "has a normaliser with a wrong length";
    return std::nullopt;
  }
  CharacterMap map;
  map.units_.resize(trie_bytes / 4);
  std::memcpy(map.units_.data(), rest.data(), trie_bytes);
  map.replacements_ = rest.substr(trie_bytes);
  return map;
}

bool CharacterMap::is_safe() const {
  if (units_.empty() || replacements_.empty() || replacements_.back() != '\0') return false;
  std::vector<bool> seen(units_.size());
  std::vector<size_t> open;
  // A state is the array position that labels are combined with by exclusive or.
  const auto visit = [&](size_t state) {
    if ((state | 0xFF) >= units_.size()) return false;
    if (!seen[state]) open.push_back(state);
    seen[state] = true;
    return true;
  };
  if (!visit(offset(units_[0]))) return false;
  while (!open.empty()) {
    const size_t state = open.back();
    open.pop_back();
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t unit = units_[state ^ byte];
      if (label(unit) != byte) continue;
      const size_t next = (state ^ byte) ^ offset(unit);
      if (!visit(next)) return false;
      if (has_leaf(unit) && value(units_[next]) >= replacements_.size()) return false;
    }
  }
  return true;
}

std::optional<std::string_view> CharacterMap::find(std::string_view text) const {
  size_t state = offset(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    state ^= byte;
    const uint32_t unit = units_[state];
    if (label(unit) != byte) break;
    state ^= offset(unit);
    if (has_leaf(unit)) return std::string_view(replacements_.c_str() + value(units_[state]));
  }
  return std::nullopt;
}

}  // namespace mm::text
