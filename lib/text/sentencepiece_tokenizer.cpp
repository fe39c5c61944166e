#include "lib/text/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>

#include "lib/base/error.h"
#include "lib/text/sentencepiece_check.h"

namespace mm::text {
namespace {

using sentencepiece::SentencePieceProcessor;

// Appended to a model: field 3 (normaliser) with its field 3 (dummy prefix) = 0. Repeats of a
// message field are merged, so this turns the dummy blank off and leaves all else as it is.
constexpr std::string_view kNoDummyPrefix("\x1A\x02\x18\x00", 4);

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
    check_sentencepiece_model(model, origin);
    load(processor_, std::string(model), origin);
    load(bare_, std::string(model) + std::string(kNoDummyPrefix), origin);
    pieces_ = processor_.GetPieceSize();
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

  // The library answers unk for unknown pieces.
  std::optional<int32_t> plain_piece(std::string_view piece) const {
    const int id = processor_.PieceToId(piece);
    if (id < 0 || id >= pieces_ || processor_.IdToPiece(id) != piece) return std::nullopt;
    return id;
  }

  bool prefix_everywhere_;
  SentencePieceProcessor processor_, bare_;
  int32_t pieces_ = 0;
  int32_t vocab_size_ = 0;
};

}  // namespace

std::unique_ptr<Tokenizer> parse_sentencepiece(std::string_view model, std::string_view origin,
                                               const TokenizerOptions& options) {
  return std::make_unique<SentencePieceTokenizer>(model, origin, options);
}

}  // namespace mm::text
