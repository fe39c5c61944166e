#include "lib/text/clip_bpe.h"

#include <zlib.h>

#include <array>

#include "lib/base/error.h"
#include "lib/text/byte_alphabet.h"
#include "lib/text/pipeline_tokenizer.h"

namespace mm::text {
namespace {

constexpr std::string_view kGzip = "\x1F\x8B";
constexpr std::string_view kFirstLine = "\"bpe_simple_vocab";
constexpr std::string_view kEndOfWord = "</w>";
constexpr size_t kMaxMerges = 49152 - 256 - 2;
constexpr size_t kMaxBytes = size_t{64} << 20;
// The published pattern, special tokens aside; data, to the letter.
constexpr std::string_view kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)";

std::string gunzip(std::string_view content, std::string_view origin) {
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw InternalError("zlib cannot start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  std::string out;
  std::array<char, 65536> block;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = block.size();
    status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END)
      throw DataError("{}: damaged gzip data: {}", origin,
                      stream.msg != nullptr ? stream.msg : "it ends too early");
    out.append(block.data(), block.size() - stream.avail_out);
    if (out.size() > kMaxBytes)
      throw DataError("{}: gzip data of more than {} bytes; no tokenizer", origin, kMaxBytes);
  }
  return out;
}

// The bytes in the order of their spellings' code points: those that print come first.
void add_bytes(Vocabulary& out) {
  for (const bool prints : {true, false}) {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string bytes(1, static_cast<char>(byte));
      const std::string spelling = bytes_to_spelling(bytes);
      const bool same = spelling.size() == 1 || spelling == std::string("\xC2") + bytes ||
                        spelling == std::string("\xC3") + static_cast<char>(byte - 0x40);
      if (same == prints) out.add_bytes(bytes, out.size());
    }
  }
  for (int32_t id = 0; id < 256; ++id)
    out.add_bytes(*out.piece(id) + std::string(kEndOfWord), out.size());
}

void read_merges(std::string_view text, std::string_view origin, Vocabulary& vocabulary,
                 MergeTable& table) {
  int32_t rank = 0;
  text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  while (!text.empty() && rank < static_cast<int32_t>(kMaxMerges)) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const size_t blank = std::min(line.find(' '), line.size() - 1);
    const int32_t left = vocabulary.find_spelling(line.substr(0, blank)).value_or(-1);
    const int32_t right = vocabulary.find_spelling(line.substr(blank + 1)).value_or(-1);
    if (left < 0 || right < 0)
      throw DataError("{}: merge {} (\"{}\") does not name two pieces", origin, rank,
                      line.substr(0, 80));
    const int32_t id = vocabulary.size();
    if (!vocabulary.add_bytes(*vocabulary.piece(left) + *vocabulary.piece(right), id))
      throw DataError("{}: merge {} makes a piece that is there already", origin, rank);
    table.add(left, right, {rank++, id});
  }
}

}  // namespace

bool looks_like_clip_bpe(std::string_view content) {
  return content.starts_with(kGzip) || content.starts_with(kFirstLine);
}

std::unique_ptr<Tokenizer> parse_clip_bpe(std::string_view content, std::string_view origin,
                                          const TokenizerOptions& options) {
  const std::string text =
      content.starts_with(kGzip) ? gunzip(content, origin) : std::string(content);
  if (!text.starts_with(kFirstLine))
    throw DataError("{}: not CLIP's list of merges: it does not begin with {}", origin, kFirstLine);
  TokenizerParts parts;
  parts.vocabulary = std::make_unique<Vocabulary>(true);
  add_bytes(*parts.vocabulary);
  BpeOptions bpe{.suffix = std::string(kEndOfWord)};
  read_merges(text, origin, *parts.vocabulary, bpe.merges);
  const int32_t start = parts.vocabulary->size();
  parts.added = {{.content = "<|startoftext|>", .id = start, .special = true},
                 {.content = "<|endoftext|>", .id = start + 1, .special = true}};
  parts.wrapping = {{start}, {start + 1}};
  find_usual_ids(parts);
  parts.normalizer.add(steps::normal_form(NormalForm::kNfc));
  parts.normalizer.add(steps::replace(Pattern::regex("\\s+", origin), " "));
  parts.normalizer.add(steps::lower_case());
  parts.pre_tokenizer.add(
      steps::cut_at(Pattern::regex(kPattern, origin), SplitBehavior::kRemoved, true));
  parts.pre_tokenizer.set_byte_level();
  parts.decoder = word_end_decoder(kEndOfWord);
  parts.model = make_bpe(*parts.vocabulary, std::move(bpe));
  return make_pipeline_tokenizer(std::move(parts), options);
}

}  // namespace mm::text
