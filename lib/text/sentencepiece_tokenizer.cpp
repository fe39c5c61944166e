#include "lib/text/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>

#include "lib/base/error.h"
#include "lib/text/scratch_pool.h"
#include "lib/text/sentencepiece_check.h"
#include "lib/text/word_cache.h"

namespace mm::text {
namespace {

using sentencepiece::SentencePieceProcessor;

// Appended to a model: field 3 (normaliser) with its field 3 (dummy prefix) = 0. Repeats of a
// message field are merged, so this turns the dummy blank off and leaves all else as it is.
constexpr std::string_view kNoDummyPrefix("\x1A\x02\x18\x00", 4);

constexpr std::string_view kSign = "\u2581";

struct Scratch {
  WordCache cache;
  std::vector<Symbol> symbols;
};

void load(SentencePieceProcessor& processor, const std::string& model, std::string_view origin) {
  try {
    const auto status = processor.LoadFromSerializedProto(model);
    if (!status.ok())
      throw DataError("{}: not a usable SentencePiece model: {}", origin, status.message());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {  // the library's trie builder
    throw DataError("{}: not a usable SentencePiece model: {}", origin, e.what());
  }
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view model, std::string_view origin,
                         const TokenizerOptions& options)
      : prefix_everywhere_(options.dummy_prefix == DummyPrefix::kEverywhere) {
    const bool plain = check_sentencepiece_model(model, origin);
    load(processor_, std::string(model), origin);
    load(bare_, std::string(model) + std::string(kNoDummyPrefix), origin);
    pieces_ = processor_.GetPieceSize();
    has_dummy_ = processor_.EncodeAsPieces("a") != bare_.EncodeAsPieces("a");
    cuts_words_ = plain && words_can_be_cut();
    vocab_size_ = pieces_;
    std::vector<Mark> marks;
    for (int32_t id = 0; id < pieces_; ++id) {
      const bool end = id == processor_.bos_id() || id == processor_.eos_id();
      if (end || processor_.IsControl(id)) marks.push_back({processor_.IdToPiece(id), id});
    }
    for (const std::string& text : options.extra_marks) {
      const auto known = plain_piece(text);
      marks.push_back({text, known ? *known : vocab_size_++});
    }
    set_marks(std::move(marks));
  }

  Encoding encode_text(std::string_view text, bool at_start) const override {
    Encoding out;
    if (text.empty()) return out;
    const bool dummy = has_dummy_ && (prefix_everywhere_ || at_start);
    if (cuts_words_ && text.find(kSign) == std::string_view::npos) {
      encode_words(text, dummy, out);
      return out;
    }
    const auto& processor = prefix_everywhere_ || at_start ? processor_ : bare_;
    const auto encoded = processor.EncodeAsImmutableProto(text);
    const size_t count = encoded.pieces_size();
    out.ids.reserve(count);
    out.begin_byte.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const auto piece = encoded.pieces(static_cast<int>(i));
      out.ids.push_back(static_cast<int32_t>(piece.id()));
      out.begin_byte.push_back(piece.begin());
    }
    return out;
  }

  std::string decode(std::span<const int32_t> ids, bool keep_marks) const override {
    std::string out;
    std::vector<int> run;
    const auto flush = [&] {
      out += processor_.DecodeIds(run);
      run.clear();
    };
    for (const int32_t id : ids) {
      const Mark* mark = find_mark(id);
      if (mark == nullptr) {
        if (id >= 0 && id < pieces_) run.push_back(id);
      } else if (keep_marks) {
        flush();
        out += mark->text;
      }
    }
    flush();
    return out;
  }

  int32_t vocab_size() const override { return vocab_size_; }
  int32_t bos_id() const override { return processor_.bos_id(); }
  int32_t eos_id() const override { return processor_.eos_id(); }
  int32_t unk_id() const override { return processor_.unk_id(); }
  int32_t pad_id() const override { return processor_.pad_id(); }

  std::optional<int32_t> piece_to_id(std::string_view piece) const override {
    for (const Mark& mark : marks()) {
      if (mark.text == piece) return mark.id;
    }
    return plain_piece(piece);
  }

  std::string id_to_piece(int32_t id) const override {
    if (id >= 0 && id < pieces_) return processor_.IdToPiece(id);
    const Mark* mark = find_mark(id);
    return mark != nullptr ? mark->text : std::string();
  }

 private:
  const Mark* find_mark(int32_t id) const {
    const auto found = std::find_if(marks().begin(), marks().end(),
                                    [id](const Mark& mark) { return mark.id == id; });
    return found == marks().end() ? nullptr : &*found;
  }

  // No piece has the sign of a blank after another character, so none reaches over such a place:
  // what the library makes of a word does not depend on its neighbours, and can be remembered.
  bool words_can_be_cut() const {
    for (int id = 0; id < pieces_; ++id) {
      std::string_view piece = processor_.IdToPiece(id);
      while (piece.starts_with(kSign)) piece.remove_prefix(kSign.size());
      if (piece.find(kSign) != std::string_view::npos) return false;
    }
    return plain_piece(kSign).has_value();
  }

  // A word is blanks and what follows them. The dummy blank is one more in front of the first.
  void encode_words(std::string_view text, bool dummy, Encoding& out) const {
    auto scratch = pool_.borrow();
    std::string first;
    for (size_t begin = 0; begin < text.size();) {
      const size_t letter = std::min(text.find_first_not_of(' ', begin), text.size());
      const size_t end = std::min(text.find(' ', letter), text.size());
      std::string_view word = text.substr(begin, end - begin);
      const bool prefixed = dummy && begin == 0;
      if (prefixed) word = first = " " + std::string(word);
      for (const Symbol& symbol : encode_word(word, *scratch)) {
        const uint32_t at = prefixed ? symbol.begin - (symbol.begin > 0) : symbol.begin;
        out.ids.push_back(symbol.id);
        out.begin_byte.push_back(static_cast<uint32_t>(begin) + at);
      }
      begin = end;
    }
  }

  std::span<const Symbol> encode_word(std::string_view word, Scratch& scratch) const {
    if (const auto known = scratch.cache.find(word); !known.empty()) return known;
    const auto encoded = bare_.EncodeAsImmutableProto(word);
    scratch.symbols.clear();
    for (size_t i = 0; i < encoded.pieces_size(); ++i) {
      const auto piece = encoded.pieces(static_cast<int>(i));
      scratch.symbols.push_back({static_cast<int32_t>(piece.id()), piece.begin()});
    }
    if (!scratch.symbols.empty()) scratch.cache.insert(word, scratch.symbols);
    return scratch.symbols;
  }

  // The library answers unk for unknown pieces.
  std::optional<int32_t> plain_piece(std::string_view piece) const {
    const int id = processor_.PieceToId(piece);
    if (id < 0 || id >= pieces_ || processor_.IdToPiece(id) != piece) return std::nullopt;
    return id;
  }

  bool prefix_everywhere_;
  bool has_dummy_ = true, cuts_words_ = false;
  SentencePieceProcessor processor_, bare_;
  mutable ScratchPool<Scratch> pool_;
  int32_t pieces_ = 0;
  int32_t vocab_size_ = 0;
};

}  // namespace

std::unique_ptr<Tokenizer> parse_sentencepiece(std::string_view model, std::string_view origin,
                                               const TokenizerOptions& options) {
  return std::make_unique<SentencePieceTokenizer>(model, origin, options);
}

}  // namespace mm::text
