#include "lib/text/tokenizer.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/text/clip_bpe.h"
#include "lib/text/label_names.h"
#include "lib/text/sentencepiece_tokenizer.h"
#include "lib/text/tiktoken.h"
#include "lib/text/tokenizer_json.h"
#include "lib/text/vocab_merges.h"

namespace mm::text {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;

const Mark* mark_at(const std::vector<Mark>& marks, std::string_view text) {
  for (const Mark& mark : marks) {
    if (text.starts_with(mark.text)) return &mark;
  }
  return nullptr;
}

}  // namespace

void Tokenizer::set_marks(std::vector<Mark> marks) {
  std::erase_if(marks, [](const Mark& mark) { return mark.text.empty() || mark.id < 0; });
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& a, const Mark& b) { return a.text.size() > b.text.size(); });
  marks_ = std::move(marks);
  for (const Mark& mark : marks_) {
    if (mark.text == kImageMark) image_id_ = mark.id;
  }
}

Encoding Tokenizer::encode_marked(std::string_view text) const {
  Encoding out;
  size_t begin = 0;
  const auto flush = [&](size_t end) {
    if (end == begin) return;
    const Encoding part = encode_text(text.substr(begin, end - begin), begin == 0);
    out.ids.insert(out.ids.end(), part.ids.begin(), part.ids.end());
    for (const uint32_t offset : part.begin_byte)
      out.begin_byte.push_back(static_cast<uint32_t>(begin) + offset);
  };
  for (size_t at = 0; at < text.size();) {
    const Mark* mark = mark_at(marks_, text.substr(at));
    if (mark == nullptr) {
      ++at;
      continue;
    }
    flush(at);
    out.ids.push_back(mark->id);
    out.begin_byte.push_back(static_cast<uint32_t>(at));
    at += mark->text.size();
    begin = at;
  }
  flush(text.size());
  return out;
}

std::vector<int32_t> Tokenizer::encode_whole(std::string_view text, size_t most) const {
  std::vector<int32_t> ids = before_;
  Encoding encoding = encode_marked(text);
  const size_t around = before_.size() + after_.size();
  if (most > 0 && encoding.ids.size() + around > most)
    encoding.ids.resize(most > around ? most - around : 0);
  ids.insert(ids.end(), encoding.ids.begin(), encoding.ids.end());
  ids.insert(ids.end(), after_.begin(), after_.end());
  return ids;
}

void Tokenizer::set_wrapping(std::vector<int32_t> before, std::vector<int32_t> after) {
  before_ = std::move(before);
  after_ = std::move(after);
}

TokenizerKind sniff_tokenizer(std::string_view content) {
  const size_t at = content.find_first_not_of(" \t\r\n");
  const bool object = at != std::string_view::npos && content[at] == '{' &&
                      content.find('"', at) != std::string_view::npos &&
                      content.find_first_not_of(" \t\r\n", at + 1) == content.find('"', at);
  if (object) return TokenizerKind::kTokenizerJson;
  if (at != std::string_view::npos && content[at] == '[') return TokenizerKind::kLabels;
  if (looks_like_clip_bpe(content)) return TokenizerKind::kClip;
  return looks_like_tiktoken(content) ? TokenizerKind::kTiktoken : TokenizerKind::kSentencePiece;
}

std::string_view tokenizer_kind_name(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::kTokenizerJson:
      return "tokenizer.json";
    case TokenizerKind::kTiktoken:
      return "tiktoken";
    case TokenizerKind::kClip:
      return "clip";
    case TokenizerKind::kLabels:
      return "labels";
    case TokenizerKind::kSentencePiece:
      break;
  }
  return "sentencepiece";
}

std::string tokenizer_copy_name(TokenizerKind kind, std::string_view scheme) {
  switch (kind) {
    case TokenizerKind::kTokenizerJson:
      return "tokenizer.json";
    case TokenizerKind::kTiktoken:
      return fmt::format("tokenizer{}{}.tiktoken", scheme.empty() ? "" : ".", scheme);
    case TokenizerKind::kClip:
      return "tokenizer.clip.txt.gz";
    case TokenizerKind::kLabels:
      return "classes.json";
    case TokenizerKind::kSentencePiece:
      break;
  }
  return "tokenizer.model";
}

std::string scheme_of_name(const std::filesystem::path& path) {
  if (path.extension() != ".tiktoken") return {};
  const std::string scheme = path.stem().extension().string();
  return scheme.empty() ? scheme : scheme.substr(1);
}

std::unique_ptr<Tokenizer> parse_tokenizer(std::string_view content, std::string_view origin,
                                           const TokenizerOptions& options) {
  if (content.empty()) throw DataError("{}: empty tokenizer file", origin);
  switch (sniff_tokenizer(content)) {
    case TokenizerKind::kTokenizerJson:
      return parse_tokenizer_json(content, origin, options);
    case TokenizerKind::kTiktoken:
      return parse_tiktoken(content, origin, options);
    case TokenizerKind::kClip:
      return parse_clip_bpe(content, origin, options);
    case TokenizerKind::kLabels:
      return parse_label_names(content, origin);
    case TokenizerKind::kSentencePiece:
      break;
  }
  return parse_sentencepiece(content, origin, options);
}

std::optional<std::filesystem::path> find_tokenizer(const std::filesystem::path& directory) {
  for (const char* name :
       {"tokenizer.json", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model"}) {
    if (std::filesystem::is_regular_file(directory / name)) return directory / name;
  }
  if (has_vocab_and_merges(directory)) return directory / "vocab.json";
  return std::nullopt;
}

std::string read_tokenizer(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    const auto found = find_tokenizer(path);
    if (!found)
      throw DataError(
          "{}: no tokenizer in it; expected tokenizer.json, a SentencePiece model, or vocab.json "
          "and "
          "merges.txt",
          path.string());
    return read_tokenizer(*found);
  }
  if (path.filename() == "vocab.json" && has_vocab_and_merges(path.parent_path()))
    return compose_tokenizer_json(path.parent_path());
  return read_file(path, kMaxFileBytes);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path,
                                          const TokenizerOptions& options) {
  TokenizerOptions named = options;
  if (named.scheme.empty()) named.scheme = scheme_of_name(path);
  return parse_tokenizer(read_tokenizer(path), path.string(), named);
}

}  // namespace mm::text
