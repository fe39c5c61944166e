#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// What the shell's lexer and its expansions share.
namespace mm::run::detail {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_name(char c) { return is_name_start(c) || is_digit(c); }

/// By single blanks.
std::string join_words(const std::vector<std::string>& words);

/// Adds `bytes` to what words have been expanded to. Throws DataError once it is more than 8 MiB.
void charge_expansion(size_t& budget, size_t bytes);

/// A word that grows; with `split`, unquoted expansions may break it into several. `budget` counts
/// the bytes of all words (charge_expansion).
class ShellFields {
 public:
  ShellFields(size_t& budget, bool split) : budget_(budget), split_(split) {}

  void add(std::string_view text);
  /// Blanks and line ends in `text` end words.
  void add_split(std::string_view text);
  /// The next text begins a new word.
  void close();
  std::vector<std::string> finish();

 private:
  size_t& budget_;
  bool split_;
  bool open_ = false;
  std::string now_;
  std::vector<std::string> done_;
};

}  // namespace mm::run::detail
