#include "lib/run/import_shell_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"

namespace mm::run::detail {
namespace {

bool ends_word(char c) {
  return is_blank(c) || std::string_view("\n;&|()<>").find(c) != std::string_view::npos;
}

}  // namespace

char ShellLexer::take() {
  const char c = text_[at_++];
  if (c == '\n') ++line_;
  return c;
}

void ShellLexer::fail(int line, const std::string& what) const {
  throw DataError("{}:{}: {}", scope_.origin, line, what);
}

void ShellLexer::skip_blanks() {
  for (;;) {
    if (is_blank(peek())) {
      take();
    } else if (peek() == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\r' ? 1 : 0;
      take();
      take();
    } else {
      return;
    }
  }
}

ShellToken ShellLexer::next(bool assignments, bool test) {
  using Kind = ShellToken::Kind;
  do {
    skip_blanks();
    if (peek() == '#') {
      while (!at_end() && peek() != '\n') take();
    }
  } while (!test && skip_redirection());
  ShellToken token{.kind = Kind::kEndOfText, .line = line_};
  if (at_end()) return token;
  const char c = peek();
  const bool is_operator = ends_word(c);
  if (is_operator && !(test && c != '\n' && c != ';')) {
    take();
    if (c == '\n') skip_here_documents();
    token.kind = Kind::kEndOfCommand;
    return token;
  }
  token.kind = Kind::kWords;
  if (is_operator) {
    token.words.emplace_back(1, take());
    return token;
  }
  if (assignments) {
    if (auto assignment = read_assignment()) return *assignment;
  }
  token.words = read_word(/*split=*/true, test);
  return token;
}

bool ShellLexer::skip_redirection() {
  size_t ahead = 0;
  while (is_digit(peek(ahead))) ++ahead;
  if (ahead == 0 && peek() == '&' && peek(1) == '>') ahead = 1;
  if (peek(ahead) != '<' && peek(ahead) != '>') return false;
  at_ += ahead;
  const bool here = peek() == '<' && peek(1) == '<' && peek(2) != '<';
  while (!at_end() && std::string_view("<>&|-").find(peek()) != std::string_view::npos) take();
  skip_blanks();
  if (peek() == '(') {
    read_balanced('(', ')');
    return true;
  }
  const std::vector<std::string> target = read_word(/*split=*/false);
  if (here && !target.empty()) here_ends_.push_back(target.front());
  return true;
}

void ShellLexer::skip_here_documents() {
  for (const std::string& end : here_ends_) {
    while (!at_end()) {
      std::string row;
      while (!at_end() && peek() != '\n') row += take();
      if (!at_end()) take();
      row.erase(0, row.find_first_not_of('\t') == std::string::npos ? row.size()
                                                                    : row.find_first_not_of('\t'));
      if (!row.empty() && row.back() == '\r') row.pop_back();
      if (row == end) break;
    }
  }
  here_ends_.clear();
}

std::optional<ShellToken> ShellLexer::read_assignment() {
  if (!is_name_start(peek())) return std::nullopt;
  size_t length = 1;
  while (is_name(peek(length))) ++length;
  const bool append = peek(length) == '+';
  if (peek(length + (append ? 1 : 0)) != '=') return std::nullopt;
  ShellToken token{.kind = ShellToken::Kind::kAssignment, .line = line_};
  token.name = text_.substr(at_, length);
  token.append = append;
  at_ += length + (append ? 2 : 1);
  if (peek() == '(') {
    token.array = true;
    token.words = read_array();
  } else {
    token.words = {join_words(read_word(/*split=*/false))};
  }
  return token;
}

std::vector<std::string> ShellLexer::read_array() {
  const int begin = line_;
  take();
  std::vector<std::string> all;
  for (;;) {
    skip_blanks();
    if (at_end()) fail(begin, "the list that begins here has no closing )");
    if (peek() == ')') break;
    if (peek() == '#') {
      while (!at_end() && peek() != '\n') take();
    } else if (ends_word(peek())) {
      take();
    } else {
      for (std::string& word : read_word(/*split=*/true)) all.push_back(std::move(word));
    }
  }
  take();
  return all;
}

std::vector<std::string> ShellLexer::read_word(bool split, bool test) {
  ShellFields out(scope_.expanded_bytes, split);
  while (!at_end() && !(ends_word(peek()) && !(test && (peek() == '(' || peek() == ')')))) {
    const char c = peek();
    if (c == '\\') {
      take();
      if (at_end()) break;
      if (peek() == '\r' && peek(1) == '\n') take();
      const char escaped = take();
      if (escaped != '\n') out.add(std::string_view(&escaped, 1));
    } else if (c == '\'') {
      read_single_quotes(out);
    } else if (c == '"') {
      read_double_quotes(out);
    } else if (c == '$') {
      read_dollar(out, /*quoted=*/false);
    } else if (c == '`') {
      out.add("$(" + read_balanced('`', '`') + ")");
    } else {
      out.add(text_.substr(at_, 1));
      take();
    }
  }
  return out.finish();
}

void ShellLexer::read_single_quotes(ShellFields& out) {
  const int begin = line_;
  take();
  const size_t from = at_;
  while (!at_end() && peek() != '\'') take();
  if (at_end()) fail(begin, "the quote that begins here never ends");
  out.add(text_.substr(from, at_ - from));
  take();
}

void ShellLexer::read_double_quotes(ShellFields& out) {
  const int begin = line_;
  take();
  out.add("");
  while (!at_end() && peek() != '"') {
    const char c = peek();
    if (c == '\\') {
      take();
      if (at_end()) break;
      const char escaped = take();
      if (escaped == '\n') continue;
      if (std::string_view("$`\"\\").find(escaped) == std::string_view::npos) out.add("\\");
      out.add(std::string_view(&escaped, 1));
    } else if (c == '$') {
      read_dollar(out, /*quoted=*/true);
    } else if (c == '`') {
      out.add("$(" + read_balanced('`', '`') + ")");
    } else {
      out.add(text_.substr(at_, 1));
      take();
    }
  }
  if (at_end()) fail(begin, "the quote that begins here never ends");
  take();
}

}  // namespace mm::run::detail
