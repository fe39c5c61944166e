#include <algorithm>

#include "lib/text/prefix_tree.h"
#include "lib/text/text_model.h"
#include "lib/text/utf8.h"
#include "lib/text/vocabulary.h"

namespace mm::text {
namespace {

constexpr double kUnknownPenalty = 10;

class Unigram final : public TextModel {
 public:
  Unigram(const Vocabulary& vocabulary, UnigramOptions options)
      : vocabulary_(vocabulary), options_(std::move(options)) {
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      if (const std::string* piece = vocabulary.piece(id)) tree_.add(*piece, id);
    }
    const auto worst = std::min_element(options_.scores.begin(), options_.scores.end());
    unknown_score_ = (worst != options_.scores.end() ? *worst : 0.0) - kUnknownPenalty;
    if (options_.byte_fallback) bytes_ = byte_pieces(vocabulary);
  }

  void encode(std::string_view word, ModelRoom& room, std::vector<Symbol>& out) const override {
    auto& arrivals = room.arrivals;
    arrivals.assign(word.size() + 1, {});
    for (size_t at = 0; at < word.size();) {
      const size_t length = decode_utf8(word, at).length_bytes;
      extend(word, at, length, arrivals);
      at += length;
    }
    const size_t first = out.size();
    for (size_t end = word.size(); end > 0;) end = append_last(word, end, arrivals, out);
    std::reverse(out.begin() + static_cast<ptrdiff_t>(first), out.end());
  }

 private:
  using Arrivals = std::vector<ModelRoom::Arrival>;

  static void offer(ModelRoom::Arrival& to, double score, size_t begin, int32_t id) {
    if (to.begin < 0 || score > to.score) to = {score, static_cast<int32_t>(begin), id};
  }

  // All pieces that begin at `at`, where a character of `length` bytes stands.
  void extend(std::string_view word, size_t at, size_t length, Arrivals& arrivals) const {
    const double here = arrivals[at].score;
    bool has_single = false;
    PrefixTree::Step step{PrefixTree::kRoot};
    for (size_t i = at; i < word.size(); ++i) {
      step = tree_.step(step.node, word[i]);
      if (step.node < 0) break;
      if (step.id < 0) continue;
      offer(arrivals[i + 1], options_.scores[step.id] + here, at, step.id);
      has_single = has_single || i + 1 == at + length;
    }
    if (!has_single) offer(arrivals[at + length], unknown_score_ + here, at, options_.unk);
  }

  // The last piece of the best way to `end`, unknown neighbours fused; gives where it begins. In
  // reverse order.
  size_t append_last(std::string_view word, size_t end, const Arrivals& arrivals,
                     std::vector<Symbol>& out) const {
    const int32_t id = arrivals[end].id;
    auto begin = static_cast<size_t>(arrivals[end].begin);
    if (id != options_.unk) {
      out.push_back({id, static_cast<uint32_t>(begin)});
      return begin;
    }
    while (begin > 0 && arrivals[begin].id == options_.unk)
      begin = static_cast<size_t>(arrivals[begin].begin);
    append_unknown(word.substr(begin, end - begin), static_cast<uint32_t>(begin), out);
    return begin;
  }

  void append_unknown(std::string_view text, uint32_t at, std::vector<Symbol>& out) const {
    const auto id_of = [&](char c) { return bytes_[static_cast<unsigned char>(c)]; };
    if (options_.byte_fallback && !vocabulary_.find(text) &&
        std::all_of(text.begin(), text.end(), [&](char c) { return id_of(c) >= 0; })) {
      for (size_t i = text.size(); i-- > 0;)
        out.push_back({id_of(text[i]), at + static_cast<uint32_t>(i)});
      return;
    }
    const int32_t id = vocabulary_.find(text).value_or(options_.unk);
    if (id < 0) refuse_word(text);
    out.push_back({id, at});
  }

  const Vocabulary& vocabulary_;
  UnigramOptions options_;
  PrefixTree tree_;
  double unknown_score_ = 0;
  std::vector<int32_t> bytes_;
};

}  // namespace

std::unique_ptr<TextModel> make_unigram(const Vocabulary& vocabulary, UnigramOptions options) {
  return std::make_unique<Unigram>(vocabulary, std::move(options));
}

}  // namespace mm::text
