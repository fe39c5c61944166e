#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mm::run {

/// One simple command of a script, its variables replaced and its quotes gone.
struct ShellCommand {
  int line = 0;  ///< where it begins, from 1
  std::vector<std::string> words;
};

/// What a script would run.
struct ShellScript {
  std::vector<ShellCommand> commands;  ///< in order; of an `if` only the branch that is taken
  std::vector<std::string> notes;      ///< "line 7: ...": what was not followed
};

struct ShellInput {
  std::string origin;                            ///< file name for messages
  std::map<std::string, std::string> variables;  ///< known before the first line
  std::vector<std::string> arguments;            ///< $1, $2, ...
};

/// Reads the part of the shell's language that training scripts are written in; runs nothing.
/// Understood: comments, continuation lines, quotes, assignments (NAME=, NAME+=, arrays, export),
/// $NAME, ${NAME:-default}, ${NAME//a/b}, ${NAME[@]}, `if` with simple tests, `bash -c STRING`,
/// redirections and here-documents (skipped). Loops, functions and `case` are read once, with a
/// note. What has no known value stays as written, "${NAME}" or "$(command)": is_unresolved().
/// Throws DataError with origin and line for a quote or bracket that never ends, for bytes that no
/// script has, and for expansions above 8 MiB.
ShellScript read_shell(std::string_view text, const ShellInput& input);

/// Does a part of this word come from a variable or command without a known value?
bool is_unresolved(std::string_view word);
/// The first such part: "${WORKSPACE}".
std::string unresolved_part(std::string_view word);

}  // namespace mm::run
