#include "lib/text/added_tokens.h"

#include <algorithm>

#include "lib/text/unicode.h"
#include "lib/text/utf8.h"

namespace mm::text {
namespace {

// The first byte of the character that ends before `end`.
size_t character_before(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word(decode_utf8(text, character_before(text, begin)).value)) return true;
  return end < text.size() && is_word(decode_utf8(text, end).value);
}

size_t before_white_space(std::string_view text, size_t at) {
  while (at > 0) {
    const size_t before = character_before(text, at);
    const CodePoint c = decode_utf8(text, before);
    if (!c.valid || !is_white_space(c.value)) break;
    at = before;
  }
  return at;
}

size_t after_white_space(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint c = decode_utf8(text, at);
    if (!c.valid || !is_white_space(c.value)) break;
    at += c.length_bytes;
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer)
    : tokens_(std::move(tokens)), tables_(2) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    std::string content =
        token.normalized ? normalizer.apply(token.content) : std::string(token.content);
    if (content.empty()) continue;
    empty_[token.normalized] = false;
    tables_[token.normalized][static_cast<unsigned char>(content[0])].push_back({content, i});
  }
  for (Table& table : tables_) {
    for (auto& entries : table) {
      std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.content.size() > b.content.size();
      });
    }
  }
}

AddedTokens::Match AddedTokens::match_at(const Table& table, std::string_view text, size_t at,
                                         bool special) const {
  for (const Entry& entry : table[static_cast<unsigned char>(text[at])]) {
    if (text.substr(at).starts_with(entry.content))
      return {at, at + entry.content.size(),
              !tokens_[entry.token].special || special ? &tokens_[entry.token] : nullptr};
  }
  return {at, at, nullptr};
}

void AddedTokens::cut(TextView view, bool normalized, bool special, Part part) const {
  const std::string_view text = view.text;
  size_t done = 0;
  if (!empty_[normalized]) {
    const Table& table = tables_[normalized];
    for (size_t at = 0; at < text.size();) {
      if (table[static_cast<unsigned char>(text[at])].empty()) {
        ++at;
        continue;
      }
      Match match = match_at(table, text, at, special);
      at = std::max(match.end, at + 1);
      if (match.token == nullptr ||
          (match.token->single_word && touches_word(text, match.begin, match.end)))
        continue;
      if (match.token->lstrip) match.begin = std::max(done, before_white_space(text, match.begin));
      if (match.token->rstrip) at = match.end = after_white_space(text, match.end);
      if (match.begin > done) part(view.part(done, match.begin), nullptr);
      part(view.part(match.begin, match.end), match.token);
      done = match.end;
    }
  }
  if (done < text.size()) part(view.part(done, text.size()), nullptr);
}

}  // namespace mm::text
