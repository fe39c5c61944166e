#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/run/import_shell_fields.h"

namespace mm::run::detail {

/// Name -> words; a plain variable has one.
using ShellVariables = std::map<std::string, std::vector<std::string>, std::less<>>;

/// What words are expanded with; lives longer than the lexers that use it.
struct ShellScope {
  std::string origin;
  ShellVariables variables;
  std::vector<std::string> arguments;
  size_t expanded_bytes = 0;  ///< so far; bounded
};

/// One token of a script.
struct ShellToken {
  enum class Kind { kWords, kAssignment, kEndOfCommand, kEndOfText } kind = Kind::kEndOfText;
  int line = 0;
  std::vector<std::string> words;  ///< of a word with variables: none, one or more
  std::string name;                ///< kAssignment: NAME; words are its value
  bool append = false;             ///< kAssignment: NAME+=
  bool array = false;              ///< kAssignment: NAME=( )
};

/// Cuts a script into tokens and expands them with the variables of that moment. See read_shell()
/// for what is understood. Not thread-safe; `text` and `scope` must outlive it.
class ShellLexer {
 public:
  ShellLexer(std::string_view text, ShellScope& scope, int first_line = 1)
      : text_(text), scope_(scope), line_(first_line) {}

  /// `assignments`: NAME=value is one (a command has not begun); `test`: inside [[ ]], where
  /// operators are words.
  ShellToken next(bool assignments, bool test);

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char take();
  [[noreturn]] void fail(int line, const std::string& what) const;

  void skip_blanks();
  bool skip_redirection();
  void skip_here_documents();
  std::optional<ShellToken> read_assignment();
  std::vector<std::string> read_array();
  std::vector<std::string> read_word(bool split, bool test = false);
  void read_single_quotes(ShellFields& out);
  void read_double_quotes(ShellFields& out);
  void read_dollar(ShellFields& out, bool quoted);
  void read_braced(std::string_view inside, ShellFields& out, bool quoted);
  std::string read_balanced(char open, char close);
  std::string expand_default(std::string_view text);
  std::optional<std::vector<std::string>> lookup(std::string_view name) const;

  std::string_view text_;
  ShellScope& scope_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<std::string> here_ends_;  ///< delimiters of here-documents that follow this line
};

}  // namespace mm::run::detail
