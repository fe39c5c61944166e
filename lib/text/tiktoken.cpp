#include "lib/text/tiktoken.h"

#include <algorithm>
#include <charconv>

#include "lib/base/base64.h"
#include "lib/base/error.h"
#include "lib/text/pipeline_tokenizer.h"
#include "lib/text/tiktoken_schemes.h"

namespace mm::text {
namespace {

constexpr int32_t kMaxRank = 4'000'000;
// Published files have up to 128 bytes; merges of a piece are as many look-ups of its parts.
constexpr size_t kMaxPieceBytes = 4096;

struct Line {
  std::string bytes;
  int32_t rank = -1;
};

std::optional<Line> parse_line(std::string_view line) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  auto bytes = decode_base64(line.substr(0, blank));
  const std::string_view number = line.substr(blank + 1);
  int32_t rank = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
  if (!bytes || bytes->empty() || bytes->size() > kMaxPieceBytes || error != std::errc() ||
      end != number.data() + number.size() || rank < 0 || rank > kMaxRank)
    return std::nullopt;
  return Line{std::move(*bytes), rank};
}

std::string_view take_line(std::string_view& content) {
  const size_t end = std::min(content.find('\n'), content.size());
  std::string_view line = content.substr(0, end);
  content.remove_prefix(std::min(end + 1, content.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void read_ranks(std::string_view content, std::string_view origin, Vocabulary& out) {
  size_t number = 0;
  while (!content.empty()) {
    const std::string_view line = take_line(content);
    ++number;
    if (line.empty()) continue;
    auto piece = parse_line(line);
    if (!piece)
      throw DataError("{}:{}: not a piece in base 64, a blank and its rank", origin, number);
    if (!out.add_bytes(std::move(piece->bytes), piece->rank))
      throw DataError("{}:{}: the piece or its rank is there twice", origin, number);
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (!out.find(std::string(1, static_cast<char>(byte))))
      throw DataError("{}: the byte 0x{:02x} has no rank", origin, byte);
  }
  if (out.size() > 4 * static_cast<int64_t>(out.count()) + 65536)
    throw DataError("{}: {} pieces but ranks up to {}", origin, out.count(), out.size() - 1);
}

// Two pieces join where their bytes are a piece; the lower its rank, the earlier.
MergeTable merges_of(const Vocabulary& vocabulary) {
  MergeTable table;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.piece(id) == nullptr) continue;
    const std::string_view piece = *vocabulary.piece(id);
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      const auto left = vocabulary.find(piece.substr(0, cut));
      const auto right = left ? vocabulary.find(piece.substr(cut)) : std::nullopt;
      if (right) table.add(*left, *right, {id, id});
    }
  }
  return table;
}

const TiktokenScheme& scheme_of(const TokenizerOptions& options, int32_t ranks,
                                std::string_view origin) {
  for (const TiktokenScheme& scheme : all_tiktoken_schemes()) {
    if (options.scheme.empty() ? scheme.ranks == ranks : scheme.name == options.scheme)
      return scheme;
  }
  const std::string known = fmt::format("{}", fmt::join(tiktoken_schemes(), ", "));
  if (!options.scheme.empty())
    throw UsageError("tokenizer scheme \"{}\" is unknown; known: {}", options.scheme, known);
  throw DataError("{}: a tiktoken file of {} ranks is not known; name its scheme: {}", origin,
                  ranks, known);
}

}  // namespace

std::vector<std::string> tiktoken_schemes() {
  std::vector<std::string> names;
  for (const TiktokenScheme& scheme : all_tiktoken_schemes()) names.emplace_back(scheme.name);
  return names;
}

bool looks_like_tiktoken(std::string_view content) {
  return content.find('\n') < 3 * kMaxPieceBytes && parse_line(take_line(content)).has_value();
}

std::unique_ptr<Tokenizer> parse_tiktoken(std::string_view content, std::string_view origin,
                                          const TokenizerOptions& options) {
  TokenizerParts parts;
  parts.vocabulary = std::make_unique<Vocabulary>(true);
  read_ranks(content, origin, *parts.vocabulary);
  // One published file lists its special token among the ranks.
  const int32_t ranks = parts.vocabulary->size();
  const TiktokenScheme& scheme = scheme_of(options, ranks, origin);
  parts.added = special_tokens(scheme, ranks);
  parts.pre_tokenizer.add(
      steps::cut_at(Pattern::regex(scheme.pattern, origin), SplitBehavior::kIsolated, false));
  parts.pre_tokenizer.set_byte_level();
  if (scheme.nfc) parts.normalizer.add(steps::normal_form(NormalForm::kNfc));
  parts.decoder.set_bytes_only();
  find_usual_ids(parts);
  if (scheme.adds_bos) parts.wrapping.before = {parts.bos};
  parts.model =
      make_bpe(*parts.vocabulary, {.merges = merges_of(*parts.vocabulary), .ignore_merges = true});
  return make_pipeline_tokenizer(std::move(parts), options);
}

}  // namespace mm::text
