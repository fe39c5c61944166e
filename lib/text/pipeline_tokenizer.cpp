#include "lib/text/pipeline_tokenizer.h"

#include <algorithm>
#include <initializer_list>
#include <unordered_map>

#include "lib/text/scratch_pool.h"
#include "lib/text/utf8.h"
#include "lib/text/word_cache.h"

namespace mm::text {
namespace {

struct Scratch {
  std::array<AlignedText, 2> normalised;
  std::vector<Symbol> symbols;
  ModelRoom room;
  WordCache cache;
};

class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
    added_ = AddedTokens(std::move(parts_.added), parts_.normalizer);
    vocab_size_ = parts_.vocabulary->size();
    std::vector<Mark> marks;
    for (const AddedToken& token : added_.tokens()) {
      vocab_size_ = std::max(vocab_size_, token.id + 1);
      by_id_.emplace(token.id, &token);
      marks.push_back({token.content, token.id});
    }
    set_marks(std::move(marks));
    set_wrapping(parts_.wrapping.before, parts_.wrapping.after);
  }

  Encoding encode_text(std::string_view text, bool at_start) const override {
    return encode(text, at_start, false);
  }
  Encoding encode_marked(std::string_view text) const override { return encode(text, true, true); }

  std::string decode(std::span<const int32_t> ids, bool keep_marks) const override {
    const bool bytes = parts_.decoder.bytes_only() && parts_.vocabulary->byte_level();
    std::string text;
    Decoder::Pieces pieces;
    for (const int32_t id : ids) {
      const AddedToken* token = added(id);
      if (token != nullptr && token->special && !keep_marks) continue;
      const std::string* piece = token != nullptr ? &token->content : parts_.vocabulary->piece(id);
      if (piece == nullptr) continue;
      if (bytes) {
        text += *piece;
      } else {
        pieces.push_back(token != nullptr ? *piece : parts_.vocabulary->spelling(id));
      }
    }
    return bytes ? replace_invalid_utf8(text) : parts_.decoder.decode(std::move(pieces));
  }

  int32_t vocab_size() const override { return vocab_size_; }
  int32_t bos_id() const override { return parts_.bos; }
  int32_t eos_id() const override { return parts_.eos; }
  int32_t unk_id() const override { return parts_.unk; }
  int32_t pad_id() const override { return parts_.pad; }

  std::optional<int32_t> piece_to_id(std::string_view piece) const override {
    for (const AddedToken& token : added_.tokens()) {
      if (token.content == piece) return token.id;
    }
    return parts_.vocabulary->find_spelling(piece);
  }

  std::string id_to_piece(int32_t id) const override {
    const AddedToken* token = added(id);
    return token != nullptr ? token->content : parts_.vocabulary->spelling(id);
  }

 private:
  const AddedToken* added(int32_t id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  }

  Encoding encode(std::string_view text, bool at_start, bool special) const {
    Encoding out;
    out.ids.reserve(text.size() / 4 + 8);
    out.begin_byte.reserve(text.size() / 4 + 8);
    auto scratch = pool_.borrow();
    const auto emit = [&](TextView part, const AddedToken* token) {
      out.ids.push_back(token->id);
      out.begin_byte.push_back(part.source_of(0));
    };
    added_.cut(TextView(text), false, special, [&](TextView raw, const AddedToken* token) {
      if (token != nullptr) return emit(raw, token);
      const TextView normalised = parts_.normalizer.apply(raw, scratch->normalised);
      added_.cut(normalised, true, special, [&](TextView part, const AddedToken* inner) {
        if (inner != nullptr) return emit(part, inner);
        parts_.pre_tokenizer.cut(part, at_start,
                                 [&](TextView word) { encode_word(word, *scratch, out); });
      });
    });
    return out;
  }

  void encode_word(TextView word, Scratch& scratch, Encoding& out) const {
    std::span<const Symbol> symbols = scratch.cache.find(word.text);
    if (symbols.empty()) {
      scratch.symbols.clear();
      parts_.model->encode(word.text, scratch.room, scratch.symbols);
      symbols = scratch.symbols;
      if (!symbols.empty()) scratch.cache.insert(word.text, symbols);
    }
    for (const Symbol& symbol : symbols) {
      out.ids.push_back(symbol.id);
      out.begin_byte.push_back(word.source_of(symbol.begin));
    }
  }

  TokenizerParts parts_;
  AddedTokens added_;
  std::unordered_map<int32_t, const AddedToken*> by_id_;
  int32_t vocab_size_ = 0;
  mutable ScratchPool<Scratch> pool_;
};

const AddedToken* find_content(const std::vector<AddedToken>& tokens, std::string_view content) {
  for (const AddedToken& token : tokens) {
    if (token.content == content) return &token;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(TokenizerParts parts,
                                                   const TokenizerOptions& options) {
  int32_t next = parts.vocabulary->size();
  for (const AddedToken& token : parts.added) next = std::max(next, token.id + 1);
  for (const std::string& text : options.extra_marks) {
    if (text.empty() || find_content(parts.added, text) != nullptr) continue;
    const auto known = parts.vocabulary->find_spelling(text);
    parts.added.push_back({.content = text, .id = known ? *known : next++, .special = true});
  }
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

void find_usual_ids(TokenizerParts& parts) {
  const auto first = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      if (const AddedToken* token = find_content(parts.added, name)) return token->id;
    }
    return -1;
  };
  parts.bos = first({"<s>", "<|begin_of_text|>", "<bos>", "<|startoftext|>", "[CLS]"});
  parts.eos = first({"</s>", "<|end_of_text|>", "<|endoftext|>", "<eos>", "[SEP]"});
  parts.pad = first({"<pad>", "<|pad|>", "<|finetune_right_pad_id|>", "[PAD]"});
  if (!parts.wrapping.before.empty()) parts.bos = parts.wrapping.before.front();
}

}  // namespace mm::text
