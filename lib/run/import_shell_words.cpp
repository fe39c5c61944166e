#include "lib/run/import_shell_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"

namespace mm::run::detail {
namespace {

constexpr size_t kMaxExpandedBytes = size_t{8} << 20;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }
bool ends_word(char c) {
  return is_blank(c) || std::string_view("\n;&|()<>").find(c) != std::string_view::npos;
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out += (i == 0 ? "" : " ") + words[i];
  return out;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return out;
}

}  // namespace

/// A word that grows; unquoted expansions may break it into several.
class ShellLexer::Fields {
 public:
  Fields(size_t& budget, bool split) : budget_(budget), split_(split) {}

  void add(std::string_view text) {
    if ((budget_ += text.size()) > kMaxExpandedBytes)
      throw DataError("variables expand to more than {} MiB; not a training script",
                      kMaxExpandedBytes >> 20);
    now_ += text;
    open_ = true;
  }
  void add_split(std::string_view text) {
    if (!split_) return add(text);
    size_t begin = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && !is_blank(text[i]) && text[i] != '\n') continue;
      if (i > begin) add(text.substr(begin, i - begin));
      if (i < text.size()) close();
      begin = i + 1;
    }
  }
  void close() {
    if (open_) done_.push_back(std::move(now_));
    now_.clear();
    open_ = false;
  }
  std::vector<std::string> finish() {
    close();
    return std::move(done_);
  }

 private:
  size_t& budget_;
  bool split_;
  bool open_ = false;
  std::string now_;
  std::vector<std::string> done_;
};

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
    token.words = {join(read_word(/*split=*/false))};
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
  Fields out(scope_.expanded_bytes, split);
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

void ShellLexer::read_single_quotes(Fields& out) {
  const int begin = line_;
  take();
  const size_t from = at_;
  while (!at_end() && peek() != '\'') take();
  if (at_end()) fail(begin, "the quote that begins here never ends");
  out.add(text_.substr(from, at_ - from));
  take();
}

void ShellLexer::read_double_quotes(Fields& out) {
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

std::string ShellLexer::read_balanced(char open, char close) {
  const int begin = line_;
  const size_t from = at_ + 1;
  take();
  int depth = 1;
  while (!at_end()) {
    const char c = take();
    if (c == '\\' && !at_end()) {
      take();
    } else if (c == close && --depth == 0) {
      return std::string(text_.substr(from, at_ - 1 - from));
    } else if (c == open && open != close) {
      ++depth;
    }
  }
  fail(begin, fmt::format("the {} that begins here has no closing {}", open, close));
}

std::optional<std::vector<std::string>> ShellLexer::lookup(std::string_view name) const {
  if (name == "@" || name == "*") return scope_.arguments;
  if (name == "#") return std::vector<std::string>{std::to_string(scope_.arguments.size())};
  if (!name.empty() && is_digit(name[0])) {
    size_t index = 0;
    for (const char c : name)
      index = std::min<size_t>(index * 10 + static_cast<size_t>(c - '0'), 1 << 20);
    if (index == 0 || index > scope_.arguments.size()) return std::nullopt;
    return std::vector<std::string>{scope_.arguments[index - 1]};
  }
  const auto found = scope_.variables.find(name);
  if (found == scope_.variables.end()) return std::nullopt;
  return found->second;
}

void ShellLexer::emit(const std::vector<std::string>& values, Fields& out, bool quoted, bool each) {
  if (!each) return quoted ? out.add(join(values)) : out.add_split(join(values));
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out.close();
    quoted ? out.add(values[i]) : out.add_split(values[i]);
  }
}

void ShellLexer::read_dollar(Fields& out, bool quoted) {
  take();
  if (peek() == '{') return read_braced(read_balanced('{', '}'), out, quoted);
  if (peek() == '(') return out.add("$(" + read_balanced('(', ')') + ")");
  size_t length = 0;
  if (is_name_start(peek())) {
    while (is_name(peek(length))) ++length;
  } else if (is_digit(peek()) ||
             std::string_view("@*#?$!-").find(peek()) != std::string_view::npos) {
    length = at_end() ? 0 : 1;
  }
  if (length == 0) return out.add("$");
  const std::string name(text_.substr(at_, length));
  at_ += length;
  if (const auto values = lookup(name)) return emit(*values, out, quoted, name == "@");
  out.add("${" + name + "}");
}

void ShellLexer::read_braced(std::string_view inside, Fields& out, bool quoted) {
  size_t length = 0;
  while (length < inside.size() && is_name(inside[length])) ++length;
  if (length == 0 && !inside.empty() && (inside[0] == '@' || inside[0] == '*')) length = 1;
  const std::string_view name = inside.substr(0, length);
  std::string_view rest = inside.substr(length);
  auto values = lookup(name);
  const bool each = name == "@" || rest.starts_with("[@]");
  if (rest.starts_with("[@]") || rest.starts_with("[*]")) rest.remove_prefix(3);
  if (rest.empty() && values) return emit(*values, out, quoted, each);
  const size_t mark = rest.starts_with(":") ? 1 : 0;
  const char kind = mark < rest.size() ? rest[mark] : '\0';
  if (kind == '-' || kind == '=') {
    const bool has = values && !(mark == 1 && join(*values).empty());
    if (has) return emit(*values, out, quoted, each);
    return emit({expand_default(rest.substr(mark + 1))}, out, quoted, false);
  }
  if (values && rest.starts_with("//")) {
    size_t slash = 2;
    while (slash < rest.size() && rest[slash] != '/') slash += rest[slash] == '\\' ? 2 : 1;
    slash = std::min(slash, rest.size());
    const std::string from = unescape(rest.substr(2, slash - 2));
    const std::string to = slash < rest.size() ? unescape(rest.substr(slash + 1)) : "";
    return emit({replace_all(join(*values), from, to)}, out, quoted, false);
  }
  out.add("${" + std::string(inside) + "}");
}

std::string ShellLexer::expand_default(std::string_view text) {
  // Braces nest at most as deep as a script's author can count.
  if (std::count(text.begin(), text.end(), '{') > 16) return "${" + std::string(text) + "}";
  ShellLexer inner(text, scope_, line_);
  Fields out(scope_.expanded_bytes, /*split=*/false);
  while (!inner.at_end()) {
    if (inner.peek() == '$') {
      inner.read_dollar(out, /*quoted=*/true);
    } else if (inner.peek() == '"' || inner.peek() == '\'') {
      inner.take();
    } else {
      out.add(inner.text_.substr(inner.at_, 1));
      inner.take();
    }
  }
  return join(out.finish());
}

}  // namespace mm::run::detail
