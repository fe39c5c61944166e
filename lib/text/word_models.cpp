#include "lib/text/prefix_tree.h"
#include "lib/text/text_model.h"
#include "lib/text/vocabulary.h"

namespace mm::text {
namespace {

class WordLevel final : public TextModel {
 public:
  WordLevel(const Vocabulary& vocabulary, int32_t unk) : vocabulary_(vocabulary), unk_(unk) {}

  void encode(std::string_view word, ModelRoom&, std::vector<Symbol>& out) const override {
    const int32_t id = vocabulary_.find(word).value_or(unk_);
    if (id < 0) refuse_word(word);
    out.push_back({id, 0});
  }

 private:
  const Vocabulary& vocabulary_;
  int32_t unk_;
};

class WordPiece final : public TextModel {
 public:
  WordPiece(const Vocabulary& vocabulary, WordPieceOptions options) : options_(options) {
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      const std::string* piece = vocabulary.piece(id);
      if (piece == nullptr) continue;
      first_.add(*piece, id);
      if (piece->starts_with(options_.prefix))
        inner_.add(piece->substr(options_.prefix.size()), id);
    }
  }

  void encode(std::string_view word, ModelRoom&, std::vector<Symbol>& out) const override {
    const size_t before = out.size();
    if (count_characters(word) <= options_.max_characters && append_pieces(word, out)) return;
    if (options_.unk < 0) refuse_word(word);
    out.resize(before);
    out.push_back({options_.unk, 0});
  }

 private:
  static size_t count_characters(std::string_view word) {
    size_t count = 0;
    for (const char c : word) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    return count;
  }

  bool append_pieces(std::string_view word, std::vector<Symbol>& out) const {
    for (size_t at = 0; at < word.size();) {
      const PrefixTree& tree = at == 0 ? first_ : inner_;
      PrefixTree::Step step{PrefixTree::kRoot};
      int32_t id = -1;
      size_t end = at;
      for (size_t i = at; i < word.size(); ++i) {
        step = tree.step(step.node, word[i]);
        if (step.node < 0) break;
        if (step.id < 0) continue;
        id = step.id;
        end = i + 1;
      }
      if (id < 0) return false;
      out.push_back({id, static_cast<uint32_t>(at)});
      at = end;
    }
    return true;
  }

  WordPieceOptions options_;
  PrefixTree first_, inner_;
};

}  // namespace

std::unique_ptr<TextModel> make_word_level(const Vocabulary& vocabulary, int32_t unk) {
  return std::make_unique<WordLevel>(vocabulary, unk);
}

std::unique_ptr<TextModel> make_word_piece(const Vocabulary& vocabulary, WordPieceOptions options) {
  return std::make_unique<WordPiece>(vocabulary, std::move(options));
}

}  // namespace mm::text
