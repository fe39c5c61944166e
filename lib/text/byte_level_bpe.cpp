#include "lib/text/byte_level_bpe.h"

#include <algorithm>
#include <array>
#include <queue>

#include "lib/base/error.h"
#include "lib/text/byte_alphabet.h"
#include "lib/text/nfc.h"
#include "lib/text/utf8.h"

namespace mm::text {
namespace {

// A pair that may be merged; stale when one of its symbols has changed since.
struct Candidate {
  int32_t rank;
  uint32_t left;
  int32_t left_id, right_id;
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

// Symbols as a linked list, so that a merge costs O(log n).
class Merger {
 public:
  Merger(std::vector<Symbol> symbols, const MergeTable& table)
      : symbols_(std::move(symbols)), table_(table) {
    const auto count = static_cast<uint32_t>(symbols_.size());
    next_.resize(count);
    previous_.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      next_[i] = i + 1;
      previous_[i] = i - 1;
    }
    for (uint32_t i = 0; i + 1 < count; ++i) offer(i);
  }

  std::vector<Symbol> run() {
    while (!queue_.empty()) {
      const Candidate c = queue_.top();
      queue_.pop();
      const uint32_t right = next_[c.left];
      if (symbols_[c.left].id != c.left_id || right >= symbols_.size() ||
          symbols_[right].id != c.right_id)
        continue;
      merge(c.left, right);
    }
    std::vector<Symbol> out;
    for (uint32_t i = 0; i < symbols_.size(); i = next_[i]) out.push_back(symbols_[i]);
    return out;
  }

 private:
  void offer(uint32_t left) {
    const uint32_t right = next_[left];
    if (right >= symbols_.size()) return;
    const auto* rule = table_.find(symbols_[left].id, symbols_[right].id);
    if (rule != nullptr) queue_.push({rule->rank, left, symbols_[left].id, symbols_[right].id});
  }

  void merge(uint32_t left, uint32_t right) {
    symbols_[left].id = table_.find(symbols_[left].id, symbols_[right].id)->id;
    symbols_[right].id = -1;
    next_[left] = next_[right];
    if (next_[left] < symbols_.size()) previous_[next_[left]] = left;
    offer(left);
    if (previous_[left] < symbols_.size()) offer(previous_[left]);
  }

  std::vector<Symbol> symbols_;
  const MergeTable& table_;
  std::vector<uint32_t> next_, previous_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

class ByteLevelBpe final : public JsonTokenizer {
 public:
  ByteLevelBpe(TokenizerJsonParts parts, ByteLevelBpeParts bpe)
      : JsonTokenizer(std::move(parts)), bpe_(std::move(bpe)) {
    for (int byte = 0; byte < 256; ++byte) {
      byte_ids_[byte] =
          vocabulary().find(std::string(1, static_cast<char>(byte))).value_or(unk_id());
    }
  }

  Encoding encode_text(std::string_view text, bool) const override {
    Encoding out;
    if (!bpe_.nfc || is_nfc_quick(text)) {
      encode_words(text, out);
      return out;
    }
    const Normalised normalised = to_nfc(text);
    encode_words(normalised.text, out);
    for (uint32_t& begin : out.begin_byte) begin = normalised.source_byte[begin];
    return out;
  }

  std::string decode(std::span<const int32_t> ids, bool keep_marks) const override {
    std::string bytes;
    for (const int32_t id : ids) {
      if (const std::string* mark = mark_text(id)) {
        if (keep_marks) bytes += *mark;
      } else if (const std::string* piece = vocabulary().piece(id)) {
        bytes += *piece;
      }
    }
    return replace_invalid_utf8(bytes);
  }

  std::optional<int32_t> piece_to_id(std::string_view piece) const override {
    if (const auto mark = mark_id(piece)) return mark;
    const auto bytes = spelling_to_bytes(piece);
    return bytes ? vocabulary().find(*bytes) : std::nullopt;
  }

  std::string id_to_piece(int32_t id) const override {
    if (const std::string* mark = mark_text(id)) return *mark;
    const std::string* piece = vocabulary().piece(id);
    return piece != nullptr ? bytes_to_spelling(*piece) : std::string();
  }

 private:
  void encode_words(std::string_view text, Encoding& out) const {
    bpe_.pattern.split(text, [&](size_t begin, size_t end) {
      encode_word(text.substr(begin, end - begin), begin, out);
    });
  }

  void encode_word(std::string_view word, size_t begin, Encoding& out) const {
    const auto emit = [&](int32_t id, size_t at) {
      out.ids.push_back(id);
      out.begin_byte.push_back(static_cast<uint32_t>(at));
    };
    if (bpe_.ignore_merges) {
      if (const auto whole = vocabulary().find(word)) return emit(*whole, begin);
    }
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    for (size_t i = 0; i < word.size(); ++i) {
      const int32_t id = byte_ids_[static_cast<unsigned char>(word[i])];
      if (id < 0)
        throw DataError("byte 0x{:02x} has no piece in this tokenizer",
                        static_cast<unsigned char>(word[i]));
      symbols.push_back({id, static_cast<uint32_t>(begin + i)});
    }
    for (const Symbol& symbol : merge_symbols(std::move(symbols), bpe_.merges))
      emit(symbol.id, symbol.begin);
  }

  ByteLevelBpeParts bpe_;
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace

std::vector<Symbol> merge_symbols(std::vector<Symbol> symbols, const MergeTable& table) {
  if (symbols.size() < 2) return symbols;
  return Merger(std::move(symbols), table).run();
}

std::unique_ptr<Tokenizer> make_byte_level_bpe(TokenizerJsonParts parts, ByteLevelBpeParts bpe) {
  return std::make_unique<ByteLevelBpe>(std::move(parts), std::move(bpe));
}

}  // namespace mm::text
