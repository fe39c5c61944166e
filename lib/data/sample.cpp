#include "lib/data/sample.h"

#include <zstd.h>

#include "lib/base/error.h"
#include "lib/data/byte_codec.h"

namespace mm::data {
namespace {

enum class TextCodec : uint8_t { kPlain = 0, kZstd = 1 };
constexpr int kZstdLevel = 3;

std::string text_block(const SampleText& text) {
  ByteWriter out;
  out.put(static_cast<uint32_t>(text.tokens.size()));
  out.put(static_cast<uint32_t>(text.trainable.size()));
  out.put(static_cast<uint32_t>(text.image_begin.size()));
  out.put_all(std::span(text.tokens));
  out.put_all(std::span(text.trainable));
  out.put_all(std::span(text.image_begin));
  return out.take();
}

std::string compress(const std::string& raw) {
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  const size_t size_bytes =
      ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), kZstdLevel);
  MM_CHECK(!ZSTD_isError(size_bytes), "zstd: {}", ZSTD_getErrorName(size_bytes));
  out.resize(size_bytes);
  return out;
}

void check_text(const SampleText& text) {
  uint32_t end = 0;
  for (const TokenSpan& span : text.trainable) {
    if (span.begin < end || span.end <= span.begin || span.end > text.tokens.size()) {
      throw DataError("trainable tokens {}..{} are out of order or past the {} tokens", span.begin,
                      span.end, text.tokens.size());
    }
    end = span.end;
  }
  for (size_t i = 0; i < text.image_begin.size(); ++i) {
    const uint32_t begin = text.image_begin[i];
    // At the end: a picture that no token stands for; checked when it is read.
    if (begin > text.tokens.size() || (i > 0 && begin <= text.image_begin[i - 1])) {
      throw DataError("picture {} begins at token {}, out of order or past the {} tokens", i, begin,
                      text.tokens.size());
    }
  }
}

SampleText parse_text(std::span<const std::byte> block, uint32_t expected_tokens) {
  ByteReader in(block, "token block");
  const auto tokens = in.get<uint32_t>();
  const auto spans = in.get<uint32_t>();
  const auto images = in.get<uint32_t>();
  if (tokens != expected_tokens) {
    throw DataError("{} tokens stored, the index says {}", tokens, expected_tokens);
  }
  SampleText text;
  text.tokens = in.get_all<int32_t>(tokens);
  text.trainable = in.get_all<TokenSpan>(spans);
  text.image_begin = in.get_all<uint32_t>(images);
  if (in.remaining() != 0) throw DataError("token block has {} bytes too many", in.remaining());
  check_text(text);
  return text;
}

// Behind the head of a picture whose codec byte has this bit stands its grid.
constexpr uint8_t kWithGrid = 0x80;

PictureGrid parse_grid(ByteReader& in, int32_t tiles, const StoredPicture& picture) {
  PictureGrid grid{.width = picture.width, .height = picture.height, .tiles = tiles};
  grid.original_width = in.get<uint16_t>();
  grid.original_height = in.get<uint16_t>();
  grid.rows = in.get<uint8_t>();
  grid.columns = in.get<uint8_t>();
  in.get<uint16_t>();
  const auto tokens = in.get<uint32_t>();
  if (tokens > INT32_MAX) throw DataError("picture of {} tokens", tokens);
  grid.tokens = static_cast<int32_t>(tokens);
  const int32_t cells = grid.rows * grid.columns;
  if (tiles < 1 || cells < 1 || (tiles != cells && tiles != cells + 1)) {
    throw DataError("picture of {} tiles in a grid of {} x {}", tiles, grid.rows, grid.columns);
  }
  return grid;
}

StoredPicture parse_picture(ByteReader& in) {
  StoredPicture picture;
  const auto first = in.get<uint8_t>();
  const auto codec = static_cast<uint8_t>(first & ~kWithGrid);
  const int32_t tiles = in.get<uint8_t>();
  picture.width = in.get<uint16_t>();
  picture.height = in.get<uint16_t>();
  in.get<uint16_t>();
  const auto size_bytes = in.get<uint32_t>();
  if ((first & kWithGrid) != 0) picture.grid = parse_grid(in, tiles, picture);
  const auto bytes = in.take(size_bytes);
  picture.bytes = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  if (codec > static_cast<uint8_t>(PictureCodec::kLatent)) {
    throw DataError(
        "picture stored as kind {}; this version knows raw (0), JPEG (1), WebP (2), latent (3)",
        codec);
  }
  picture.codec = static_cast<PictureCodec>(codec);
  const uint64_t raw_bytes = uint64_t{3} * picture.width * picture.height * picture.tiles();
  if (picture.codec == PictureCodec::kRaw && bytes.size() != raw_bytes) {
    throw DataError("raw picture of {}x{} in {} tiles has {} bytes, expected {}", picture.width,
                    picture.height, picture.tiles(), bytes.size(), raw_bytes);
  }
  return picture;
}

void put_picture(ByteWriter& out, const StoredPicture& picture) {
  const auto codec = static_cast<uint8_t>(picture.codec);
  out.put(static_cast<uint8_t>(picture.grid ? codec | kWithGrid : codec));
  out.put(static_cast<uint8_t>(picture.grid ? picture.grid->tiles : 0));
  out.put(picture.width);
  out.put(picture.height);
  out.put(uint16_t{0});
  out.put(static_cast<uint32_t>(picture.bytes.size()));
  if (picture.grid) {
    const PictureGrid& grid = *picture.grid;
    MM_CHECK(grid.tiles < 256 && grid.rows < 256 && grid.columns < 256, "{} x {} tiles", grid.rows,
             grid.columns);
    out.put(static_cast<uint16_t>(grid.original_width));
    out.put(static_cast<uint16_t>(grid.original_height));
    out.put(static_cast<uint8_t>(grid.rows));
    out.put(static_cast<uint8_t>(grid.columns));
    out.put(uint16_t{0});
    out.put(static_cast<uint32_t>(grid.tokens));
  }
  out.put_text(picture.bytes);
}

}  // namespace

std::string encode_sample(const SampleText& text, std::span<const StoredPicture> pictures) {
  MM_CHECK(pictures.size() == text.image_begin.size(), "{} pictures, {} places", pictures.size(),
           text.image_begin.size());
  const std::string raw = text_block(text);
  const std::string packed = compress(raw);
  const bool zstd = packed.size() < raw.size();
  const std::string& stored = zstd ? packed : raw;
  ByteWriter out;
  out.put(static_cast<uint32_t>(raw.size()));
  out.put(static_cast<uint32_t>(stored.size()));
  out.put(static_cast<uint8_t>(zstd ? TextCodec::kZstd : TextCodec::kPlain));
  out.put_text(std::string_view("\0\0\0", 3));
  out.put_text(stored);
  for (const StoredPicture& picture : pictures) put_picture(out, picture);
  return out.take();
}

TextUnpacker::TextUnpacker() : context_(ZSTD_createDCtx()) {
  MM_CHECK(context_ != nullptr, "no memory for zstd");
}

void TextUnpacker::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

std::string TextUnpacker::unpack(std::span<const std::byte> stored, size_t raw_bytes) {
  std::string out(raw_bytes, '\0');
  const size_t got =
      ZSTD_decompressDCtx(context_.get(), out.data(), out.size(), stored.data(), stored.size());
  if (ZSTD_isError(got) || got != raw_bytes) {
    throw DataError("token block of {} bytes does not unpack to {} bytes ({})", stored.size(),
                    raw_bytes, ZSTD_isError(got) ? ZSTD_getErrorName(got) : "other length");
  }
  return out;
}

DecodedSample decode_sample(std::span<const std::byte> bytes, uint32_t tokens) {
  TextUnpacker unpacker;
  return decode_sample(bytes, tokens, unpacker);
}

DecodedSample decode_sample(std::span<const std::byte> bytes, uint32_t tokens,
                            TextUnpacker& unpacker) {
  ByteReader in(bytes, "sample");
  const auto raw_bytes = in.get<uint32_t>();
  const auto stored = in.get<uint32_t>();
  const auto codec = in.get<uint8_t>();
  in.take(3);
  const auto block = in.take(stored);
  // Three counts, then per token at most its id, one span and one picture.
  if (raw_bytes > 12 + uint64_t{16} * tokens) {
    throw DataError("token block claims {} bytes for {} tokens", raw_bytes, tokens);
  }
  DecodedSample sample;
  if (codec == static_cast<uint8_t>(TextCodec::kZstd)) {
    const std::string raw = unpacker.unpack(block, raw_bytes);
    sample.text = parse_text(std::as_bytes(std::span(raw)), tokens);
  } else if (codec == static_cast<uint8_t>(TextCodec::kPlain)) {
    sample.text = parse_text(block, tokens);
  } else {
    throw DataError("token block stored as kind {}; this version knows plain (0) and zstd (1)",
                    codec);
  }
  for (const uint32_t begin : sample.text.image_begin) {
    sample.pictures.push_back(parse_picture(in));
    const std::optional<PictureGrid>& grid = sample.pictures.back().grid;
    if (begin == tokens && !(grid && grid->tokens == 0))
      throw DataError("a picture begins behind the last of {} tokens", tokens);
  }
  if (in.remaining() != 0) throw DataError("sample has {} bytes too many", in.remaining());
  return sample;
}

std::string join_tiles(std::span<const std::string> files) {
  if (files.size() == 1) return files[0];
  ByteWriter out;
  for (const std::string& file : files) {
    out.put(static_cast<uint32_t>(file.size()));
    out.put_text(file);
  }
  return out.take();
}

std::vector<std::string_view> split_tiles(std::string_view bytes, int32_t tiles) {
  if (tiles == 1) return {bytes};
  ByteReader in(std::as_bytes(std::span(bytes)), "tiles of a picture");
  std::vector<std::string_view> files;
  for (int32_t i = 0; i < tiles; ++i) {
    const auto file = in.take(in.get<uint32_t>());
    files.emplace_back(reinterpret_cast<const char*>(file.data()), file.size());
  }
  if (in.remaining() != 0) throw DataError("{} bytes behind a picture's tiles", in.remaining());
  return files;
}

std::vector<int32_t> labels_of(const SampleText& text) {
  std::vector<int32_t> labels(text.tokens.size(), kIgnore);
  for (const TokenSpan& span : text.trainable) {
    for (uint32_t i = span.begin; i < span.end; ++i) labels[i] = text.tokens[i];
  }
  return labels;
}

SampleSize size_of(const SampleText& text, std::span<const PictureGrid> grids) {
  SampleSize size;
  size.tokens = static_cast<int32_t>(text.tokens.size());
  size.images = static_cast<int32_t>(text.image_begin.size());
  if (!grids.empty()) size.images = 0;
  for (const PictureGrid& grid : grids) size.images += grid.tiles;
  for (const TokenSpan& span : text.trainable) {
    size.targets += static_cast<int32_t>(span.end - span.begin) - (span.begin == 0 ? 1 : 0);
  }
  return size;
}

}  // namespace mm::data
