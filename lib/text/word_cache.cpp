#include "lib/text/word_cache.h"

#include <cstring>

namespace mm::text {
namespace {

// Words are short: eight bytes at a time, the last ones in one load of their own.
uint64_t hash_of(std::string_view word) {
  uint64_t h = word.size() * 0x9E3779B97F4A7C15ULL;
  const char* at = word.data();
  for (size_t left = word.size(); left > 0;) {
    uint64_t block = 0;
    const size_t bytes = left < 8 ? left : 8;
    std::memcpy(&block, at, bytes);
    h = (h ^ block) * 0xD6E8FEB86659FD93ULL;
    h ^= h >> 32;
    at += bytes;
    left -= bytes;
  }
  return h;
}

}  // namespace

std::span<const Symbol> WordCache::find(std::string_view word) {
  if (word.size() > kMaxWordBytes || word.empty()) return {};
  if (slots_.empty()) clear();
  hash_ = hash_of(word);
  for (size_t at = hash_ % kSlots;; at = (at + 1) % kSlots) {
    const Slot& slot = slots_[at];
    if (slot.key_bytes == 0) return {};
    if (slot.hash == static_cast<uint32_t>(hash_ >> 32) && slot.key_bytes == word.size() &&
        std::memcmp(keys_.data() + slot.key, word.data(), word.size()) == 0)
      return std::span(symbols_).subspan(slot.symbols, slot.symbol_count);
  }
}

void WordCache::insert(std::string_view word, std::span<const Symbol> symbols) {
  if (word.size() > kMaxWordBytes || word.empty() || symbols.size() > kMaxSymbols) return;
  if (words_ >= kMaxWords) clear();
  size_t at = hash_ % kSlots;
  while (slots_[at].key_bytes != 0) at = (at + 1) % kSlots;
  slots_[at] = {static_cast<uint32_t>(hash_ >> 32), static_cast<uint32_t>(keys_.size()),
                static_cast<uint32_t>(symbols_.size()), static_cast<uint16_t>(word.size()),
                static_cast<uint16_t>(symbols.size())};
  keys_.append(word);
  symbols_.insert(symbols_.end(), symbols.begin(), symbols.end());
  ++words_;
}

void WordCache::clear() {
  slots_.assign(kSlots, {});
  keys_.clear();
  symbols_.clear();
  words_ = 0;
}

}  // namespace mm::text
