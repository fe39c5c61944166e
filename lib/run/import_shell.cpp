#include "lib/run/import_shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lib/base/error.h"
#include "lib/base/text_escape.h"
#include "lib/run/import_shell_words.h"

namespace mm::run {
namespace {

using detail::ShellScope;
using detail::ShellToken;

constexpr size_t kMaxWords = 100'000;  // of all commands together
constexpr int kMaxDepth = 4;           // of `bash -c` in `bash -c`

bool one_of(std::string_view word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == w; });
}

/// True, false, or nothing where the test cannot be decided from the script alone.
std::optional<bool> decide(std::vector<std::string> test) {
  if (test.empty() || !one_of(test.front(), {"[", "[[", "test"})) return std::nullopt;
  test.erase(test.begin());
  if (!test.empty() && one_of(test.back(), {"]", "]]"})) test.pop_back();
  bool negate = false;
  while (!test.empty() && test.front() == "!") {
    negate = !negate;
    test.erase(test.begin());
  }
  const auto result = [&](bool value) { return std::optional<bool>(value != negate); };
  // A word that expands to nothing is gone: [ -z $UNSET ] has one word.
  if (!test.empty() && test.size() <= 2 && one_of(test[0], {"-z", "-n"})) {
    const bool empty = test.size() == 1 || test[1].empty();
    // A variable that only the user's environment knows counts as set.
    return result((test[0] == "-z") == empty);
  }
  if (test.size() != 3 || is_unresolved(test[0]) || is_unresolved(test[2])) return std::nullopt;
  if (one_of(test[1], {"-eq", "=", "=="})) return result(test[0] == test[2]);
  if (one_of(test[1], {"-ne", "!="})) return result(test[0] != test[2]);
  return std::nullopt;
}

/// Follows a script from its first to its last command.
class Interpreter {
 public:
  Interpreter(std::string_view text, ShellScope& scope, ShellScript& script, int depth,
              int first_line)
      : lexer_(text, scope, first_line), scope_(scope), script_(script), depth_(depth) {}

  void run() {
    for (;;) {
      const bool test = !command_.words.empty() && command_.words.front() == "[[" &&
                        command_.words.back() != "]]";
      const ShellToken token = lexer_.next(command_.words.empty(), test);
      using Kind = ShellToken::Kind;
      if (token.kind == Kind::kWords) take_words(token);
      if (token.kind == Kind::kAssignment) assign(token);
      if (token.kind == Kind::kEndOfCommand || token.kind == Kind::kEndOfText) finish_command();
      if (token.kind == Kind::kEndOfText) return;
    }
  }

 private:
  struct Branch {
    bool active, taken;
  };

  bool active() const {
    return std::all_of(branches_.begin(), branches_.end(),
                       [](const Branch& b) { return b.active; });
  }

  void note(int line, std::string_view what) {
    script_.notes.push_back(fmt::format("line {}: {}", line, what));
  }

  void assign(const ShellToken& token) {
    if (!active()) return;
    auto& variable = scope_.variables[token.name];
    if (!token.append) variable = token.words;
    if (token.append && token.array)
      variable.insert(variable.end(), token.words.begin(), token.words.end());
    if (token.append && !token.array) {
      if (variable.empty()) variable.emplace_back();
      variable.back() += token.words.front();
    }
  }

  void take_words(const ShellToken& token) {
    if (command_.words.empty()) command_.line = token.line;
    for (const std::string& word : token.words) {
      if (command_.words.empty() && take_control(word, token.line)) continue;
      if (++words_ > kMaxWords)
        throw DataError("{}:{}: more than {} words; not a training script", scope_.origin,
                        token.line, kMaxWords);
      command_.words.push_back(word);
    }
  }

  /// Words of the shell's own grammar, where a command would begin.
  bool take_control(const std::string& word, int line) {
    if (one_of(word, {"then", "do", "done", "esac", "{", "}", "!", "time", "export", "local",
                      "readonly", "declare", "typeset"}))
      return true;
    if (word == "else" && !branches_.empty()) {
      branches_.back() = {.active = !branches_.back().taken, .taken = true};
      return true;
    }
    if (word == "fi") {
      if (!branches_.empty()) branches_.pop_back();
      return true;
    }
    if (!one_of(word, {"if", "elif", "for", "while", "until", "select", "case", "function"}))
      return false;
    control_ = word;
    control_line_ = line;
    return true;
  }

  void finish_condition() {
    if (!one_of(control_, {"if", "elif"})) {
      note(control_line_,
           fmt::format("`{}` is not followed: what it holds is read once", control_));
      return;
    }
    const bool again = control_ == "elif" && !branches_.empty();
    if (again && branches_.back().taken) {
      branches_.back().active = false;
      return;
    }
    const std::optional<bool> decided = decide(command_.words);
    if (!decided && active())
      note(control_line_, "the condition cannot be decided here: taken as false");
    const bool yes = decided.value_or(false);
    if (again) branches_.back() = {.active = yes, .taken = yes};
    if (!again) branches_.push_back({.active = yes, .taken = yes});
  }

  void finish_command() {
    if (!control_.empty()) {
      finish_condition();
      control_.clear();
    } else if (!command_.words.empty() && active()) {
      follow();
    }
    command_ = {};
  }

  void follow() {
    const std::vector<std::string>& words = command_.words;
    if (one_of(words.front(), {"source", "."})) {
      note(command_.line, fmt::format("{} is not read: give what it sets with --var NAME=VALUE",
                                      words.size() > 1 ? escape_text(words[1], 80) : "a file"));
    }
    for (size_t i = 0; i + 2 < words.size(); ++i) {
      const std::string shell = words[i].substr(words[i].rfind('/') + 1);
      if (!one_of(shell, {"bash", "sh"}) || !one_of(words[i + 1], {"-c", "-lc", "-ec"})) continue;
      if (depth_ == kMaxDepth)
        throw DataError("{}:{}: `bash -c` in `bash -c`, more than {} deep", scope_.origin,
                        command_.line, kMaxDepth);
      const std::string inner = words[i + 2];
      Interpreter(inner, scope_, script_, depth_ + 1, command_.line).run();
      return;
    }
    script_.commands.push_back(command_);
  }

  detail::ShellLexer lexer_;
  ShellScope& scope_;
  ShellScript& script_;
  int depth_;
  ShellCommand command_;
  std::string control_;  ///< "if" ... whose condition is being read
  int control_line_ = 0;
  size_t words_ = 0;
  std::vector<Branch> branches_;
};

size_t find_unresolved(std::string_view word) {
  const size_t at = std::min(word.find("${"), word.find("$("));
  return at;
}

}  // namespace

ShellScript read_shell(std::string_view text, const ShellInput& input) {
  if (text.find('\0') != std::string_view::npos)
    throw DataError("{}: holds a zero byte; expected a shell script", input.origin);
  ShellScope scope{.origin = input.origin, .variables = {}, .arguments = input.arguments};
  for (const auto& [name, value] : input.variables) scope.variables[name] = {value};
  ShellScript script;
  try {
    Interpreter(text, scope, script, 1, 1).run();
  } catch (Error& error) {
    if (!std::string_view(error.what()).starts_with(input.origin)) error.add_context(input.origin);
    throw;
  }
  return script;
}

bool is_unresolved(std::string_view word) {
  return find_unresolved(word) != std::string_view::npos;
}

std::string unresolved_part(std::string_view word) {
  const size_t at = find_unresolved(word);
  if (at == std::string_view::npos) return "";
  const size_t end = word.find(word[at + 1] == '{' ? '}' : ')', at);
  return escape_text(word.substr(at, end == std::string_view::npos ? end : end + 1 - at), 60);
}

}  // namespace mm::run
