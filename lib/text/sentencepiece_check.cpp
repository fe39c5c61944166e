#include "lib/text/sentencepiece_check.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "lib/base/error.h"
#include "lib/text/character_map.h"
#include "lib/text/utf8.h"

namespace mm::text {
namespace {

constexpr size_t kMaxPieces = 4'000'000;

// Protocol buffer wire format: a field is a varint (number << 3 | type), then a varint, 8 bytes, a
// length and bytes, or 4 bytes.
class Wire {
 public:
  Wire(std::string_view bytes, std::string_view origin) : bytes_(bytes), origin_(origin) {}

  struct Field {
    uint64_t number = 0, type = 0;
    uint64_t value = 0;        // of type 0
    std::string_view content;  // of types 1, 2 and 5
  };

  bool next(Field& field) {
    if (at_ == bytes_.size()) return false;
    const uint64_t key = varint();
    field = {key >> 3, key & 7, 0, {}};
    switch (field.type) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.content = take(8);
        break;
      case 2:
        field.content = take(varint());
        break;
      case 5:
        field.content = take(4);
        break;
      default:
        bad("has an unknown wire type");
    }
    return true;
  }

  [[noreturn]] void bad(std::string_view what) const {
    throw DataError("{}: not a SentencePiece model: the file {}; expected what spm_train writes",
                    origin_, what);
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    bad("has a number that is too long");
  }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) bad("ends inside a field");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }

  std::string_view bytes_, origin_;
  size_t at_ = 0;
};

void check_piece(std::string_view message, std::string_view origin) {
  Wire wire(message, origin);
  Wire::Field field;
  std::string_view piece;
  while (wire.next(field)) {
    if (field.number == 1 && field.type == 2) piece = field.content;
    if (field.number == 2 && field.type == 5) {
      float score = 0;
      std::memcpy(&score, field.content.data(), 4);
      if (!std::isfinite(score)) wire.bad("has a piece whose score is not finite");
    }
  }
  if (piece.empty() || piece.find('\0') != std::string_view::npos || !is_valid_utf8(piece)) {
    wire.bad("has a piece that is empty or not UTF-8");
  }
}

// NormalizerSpec: field 2 is the character map; 4 says that extra blanks go (default), 5 that
// blanks become U+2581 (default). True if text stays as it is.
bool check_normalizer(std::string_view message, std::string_view origin) {
  Wire wire(message, origin);
  Wire::Field field;
  bool has_map = false, removes_blanks = true, escapes = true;
  while (wire.next(field)) {
    if (field.number == 4 && field.type == 0) removes_blanks = field.value != 0;
    if (field.number == 5 && field.type == 0) escapes = field.value != 0;
    if (field.number != 2 || field.type != 2 || field.content.empty()) continue;
    has_map = true;
    std::string why;
    const auto map = CharacterMap::parse(field.content, why);
    if (!map) wire.bad(why);
    if (!map->is_safe()) wire.bad("has a damaged normaliser");
  }
  return !has_map && !removes_blanks && escapes;
}

// TrainerSpec: field 3 is the kind of model (2: BPE), 24 puts the sign of a blank behind words.
bool is_plain_bpe(std::string_view message, std::string_view origin) {
  Wire wire(message, origin);
  Wire::Field field;
  bool bpe = false, suffix = false;
  while (wire.next(field)) {
    if (field.number == 3 && field.type == 0) bpe = field.value == 2;
    if (field.number == 24 && field.type == 0) suffix = field.value != 0;
  }
  return bpe && !suffix;
}

}  // namespace

bool check_sentencepiece_model(std::string_view model, std::string_view origin) {
  Wire wire(model, origin);
  Wire::Field field;
  size_t pieces = 0;
  bool bpe = false, identity = false;
  while (wire.next(field)) {
    if (field.type != 2) continue;
    if (field.number == 1) {
      check_piece(field.content, origin);
      if (++pieces > kMaxPieces) wire.bad("has more than 4,000,000 pieces");
    }
    if (field.number == 2) bpe = is_plain_bpe(field.content, origin);
    if (field.number == 3) identity = check_normalizer(field.content, origin);
    if (field.number == 5) check_normalizer(field.content, origin);
  }
  if (pieces == 0) wire.bad("has no pieces");
  return bpe && identity;
}

}  // namespace mm::text
