#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/run/import_shell_words.h"

// The lexer's expansions: $NAME, ${NAME...}, $( ).
namespace mm::run::detail {
namespace {

/// One pass over `text`; what is read is charged at once, what is put in its place as it grows.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        size_t& budget) {
  charge_expansion(budget, text.size());
  std::string out;
  for (size_t at = 0, found = 0; at < text.size(); at = found + from.size()) {
    found = from.empty() ? std::string_view::npos : text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) break;
    charge_expansion(budget, to.size());
    out += to;
  }
  return out;
}

std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return out;
}

/// `each`: every value begins a word of its own, as in "$@".
void emit(const std::vector<std::string>& values, ShellFields& out, bool quoted, bool each) {
  if (!each) return quoted ? out.add(join_words(values)) : out.add_split(join_words(values));
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out.close();
    quoted ? out.add(values[i]) : out.add_split(values[i]);
  }
}

}  // namespace

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

void ShellLexer::read_dollar(ShellFields& out, bool quoted) {
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

void ShellLexer::read_braced(std::string_view inside, ShellFields& out, bool quoted) {
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
    const bool has = values && !(mark == 1 && join_words(*values).empty());
    if (has) return emit(*values, out, quoted, each);
    return emit({expand_default(rest.substr(mark + 1))}, out, quoted, false);
  }
  if (values && rest.starts_with("//")) {
    size_t slash = 2;
    while (slash < rest.size() && rest[slash] != '/') slash += rest[slash] == '\\' ? 2 : 1;
    slash = std::min(slash, rest.size());
    const std::string from = unescape(rest.substr(2, slash - 2));
    const std::string to = slash < rest.size() ? unescape(rest.substr(slash + 1)) : "";
    return emit({replace_all(join_words(*values), from, to, scope_.expanded_bytes)}, out, quoted,
                false);
  }
  out.add("${" + std::string(inside) + "}");
}

std::string ShellLexer::expand_default(std::string_view text) {
  // Braces nest at most as deep as a script's author can count.
  if (std::count(text.begin(), text.end(), '{') > 16) return "${" + std::string(text) + "}";
  ShellLexer inner(text, scope_, line_);
  ShellFields out(scope_.expanded_bytes, /*split=*/false);
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
  return join_words(out.finish());
}

}  // namespace mm::run::detail
