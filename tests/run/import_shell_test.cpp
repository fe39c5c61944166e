#include "lib/run/import_shell.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"

using namespace mm::run;
using Words = std::vector<std::string>;

namespace {

ShellScript read(const std::string& text, ShellInput input = {}) {
  input.origin = "x.sh";
  return read_shell(text, input);
}

/// The words of a script of one command.
Words words(const std::string& text, const ShellInput& input = {}) {
  const ShellScript script = read(text, input);
  REQUIRE(script.commands.size() == 1);
  return script.commands[0].words;
}

std::string message(const std::string& text) {
  try {
    read(text);
  } catch (const mm::Error& error) {
    CHECK(error.exit_code() == mm::ExitCode::kDataInvalid);
    const std::string what = error.what();
    CHECK(what.starts_with("x.sh"));
    CHECK(what.find('\n') == std::string::npos);
    return what;
  }
  return "";
}

}  // namespace

TEST_CASE("read_shell: comments, continuation lines and blanks cut words as a shell does") {
  CHECK(words("# first\n  run a  b\t c # rest\n") == Words{"run", "a", "b", "c"});
  CHECK(words("run \\\n  --lr \\\n  1e-3") == Words{"run", "--lr", "1e-3"});
  CHECK(words("run \\\r\n  --lr 1\r\n") == Words{"run", "--lr", "1"});
  CHECK(words("run a#b") == Words{"run", "a#b"});
  CHECK(words("run one\\ word long\\\ner") == Words{"run", "one word", "longer"});
}

TEST_CASE("read_shell: quotes keep blanks, single ones everything") {
  CHECK(words(R"(run 'a $X "b"' "c \" \$ d" e"f g"h "")") ==
        Words{"run", "a $X \"b\"", "c \" $ d", "ef gh", ""});
  CHECK(words("run \"two\nlines\" \"kept \\\nshort\"") == Words{"run", "two\nlines", "kept short"});
}

TEST_CASE("read_shell: variables, defaults, replacements and arguments") {
  CHECK(words("A=1\nB=\"$A 2\"\nrun $A \"$B\" $B ${A}x") ==
        Words{"run", "1", "1 2", "1", "2", "1x"});
  CHECK(words("export N=8; run ${N:-4} ${M:-4} ${E-5} ${M:-${N}0}") ==
        Words{"run", "8", "4", "5", "80"});
  CHECK(words("E=\"\"\nrun $E a \"$E\"") == Words{"run", "a", ""});
  CHECK(words("N=org/name\nrun ${N//\\//_}") == Words{"run", "org_name"});
  CHECK(words("A=1 B=2 run x") == Words{"run", "x"});
  CHECK(
      words("run $1 ${2} \"$@\" $#", {.origin = "", .variables = {}, .arguments = {"a", "b c"}}) ==
      Words{"run", "a", "b", "c", "a", "b c", "2"});
  CHECK(words("run $STORE/x", {.origin = "", .variables = {{"STORE", "/s"}}, .arguments = {}}) ==
        Words{"run", "/s/x"});
}

TEST_CASE("read_shell: lists keep their words, += adds to what is there") {
  CHECK(words("L=(--a 1  # why\n --b 'two words')\nL+=(--c)\nrun \"${L[@]}\"") ==
        Words{"run", "--a", "1", "--b", "two words", "--c"});
  CHECK(words("O=\"--a 1\"\nO+=\" --b 2\"\nrun $O") == Words{"run", "--a", "1", "--b", "2"});
}

TEST_CASE("read_shell: of an if the branch that is taken, undecided conditions are noted") {
  const char* kBranches = R"(
if [[ $DEBUG -eq 1 ]]; then
  B=8
elif [ "$KIND" = "large" ]; then
  B=256
else
  B=64
fi
if [[ -z $STORE ]]; then echo missing; exit 1; fi
run $B
)";
  const auto batch = [&](std::map<std::string, std::string> variables) {
    return words(kBranches, {.origin = "", .variables = std::move(variables), .arguments = {}})[1];
  };
  CHECK(batch({{"DEBUG", "1"}, {"KIND", "x"}}) == "8");
  CHECK(batch({{"DEBUG", "0"}, {"KIND", "large"}}) == "256");
  CHECK(batch({{"DEBUG", "0"}, {"KIND", "small"}}) == "64");
  CHECK(words("if [[ $A != 1 ]]; then B=2; else B=3; fi; run $B",
              {.origin = "", .variables = {{"A", "1"}}, .arguments = {}})[1] == "3");

  const ShellScript undecided = read("if [ $N -gt 1 ]; then B=2; else B=3; fi\nrun $B\n");
  CHECK(undecided.commands.at(0).words == Words{"run", "3"});
  REQUIRE(undecided.notes.size() == 1);
  CHECK(undecided.notes[0].starts_with("line 1: "));
}

TEST_CASE("read_shell: loops and other files are noted, their commands read once") {
  const ShellScript script = read("source env.sh\nfor s in 1 2; do\n  run $s\ndone\n");
  REQUIRE(script.notes.size() == 2);
  CHECK(script.notes[0].find("env.sh") != std::string::npos);
  CHECK(script.notes[1].find("for") != std::string::npos);
  CHECK(script.commands.back().words.front() == "run");
}

TEST_CASE("read_shell: redirections, pipes and here-documents are no arguments") {
  const ShellScript script =
      read("cat <<EOF > file\nrun --not 'this\nEOF\nrun a 2>&1 | tee log; other &> /dev/null &\n");
  REQUIRE(script.commands.size() == 4);
  CHECK(script.commands[1].words == Words{"run", "a"});
  CHECK(script.commands[1].line == 4);
  CHECK(script.commands[2].words == Words{"tee", "log"});
  CHECK(script.commands[3].words == Words{"other"});
}

TEST_CASE("read_shell: bash -c holds a script, as in Slurm jobs") {
  CHECK(words("N=4\nsrun -n 2 bash -c \"torchrun --n $N \\\n  train.py --lr 1\"") ==
        Words{"torchrun", "--n", "4", "train.py", "--lr", "1"});
  std::string deep = "run";
  for (int i = 0; i < 6; ++i) {
    std::string quoted;
    for (const char c : deep) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    deep = "bash -c '" + quoted + "'";
  }
  CHECK(message(deep).find("deep") != std::string::npos);
}

TEST_CASE("read_shell: what has no value stays as written and is told apart") {
  const Words seen = words("D=`pwd`\nrun ${HOME_OF}/x \"$D\" $(nproc) $((N * 8)) plain $1");
  CHECK(seen == Words{"run", "${HOME_OF}/x", "$(pwd)", "$(nproc)", "$((N * 8))", "plain", "${1}"});
  CHECK(is_unresolved(seen[1]));
  CHECK(unresolved_part(seen[1]) == "${HOME_OF}");
  CHECK_FALSE(is_unresolved("plain$"));
  CHECK(unresolved_part("plain").empty());
}

TEST_CASE("read_shell: what no script can be is one line with its place") {
  CHECK(message("run\n  \"no end\n").starts_with("x.sh:2: "));
  CHECK(message("run 'no end").find("quote") != std::string::npos);
  CHECK(message("A=(1 2\nrun").find("closing )") != std::string::npos);
  CHECK(message("run ${A").find("closing }") != std::string::npos);
  CHECK(message("run $(a (b)").find("closing )") != std::string::npos);
  CHECK(message(std::string("run \0 x", 7)).find("zero byte") != std::string::npos);
}

TEST_CASE("read_shell: variables that double are stopped, not believed") {
  std::string text = "A0=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 40; ++i)
    text +=
        "A" + std::to_string(i + 1) + "=$A" + std::to_string(i) + "$A" + std::to_string(i) + "\n";
  CHECK(message(text + "run $A40\n").find("MiB") != std::string::npos);
  std::string many = "run";
  for (int i = 0; i < 100'001; ++i) many += " a";
  CHECK(message(many).find("words") != std::string::npos);
  CHECK(message("run ${A:-" + std::string(100'000, '{') + std::string(100'000, '}') + "}").empty());
}

TEST_CASE("read_shell: a replacement is one pass, and is stopped while it grows") {
  CHECK(words("A=aXbXX\nrun ${A//X/} ${A//X/XX} ${A//z/y} ${A//\\//y}") ==
        Words{"run", "ab", "aXXbXXXX", "aXbXX", "aXbXX"});
  const std::string long_value(400'000, 'x');
  // 160 GB, were it built before it is counted.
  CHECK(message("A=" + long_value + "\nrun ${A//x/" + long_value + "}\n").find("MiB") !=
        std::string::npos);
  std::string often = "A=" + long_value + "\nrun";
  for (int i = 0; i < 40; ++i) often += " ${A//x/}";
  CHECK(message(often).find("MiB") != std::string::npos);
}

TEST_CASE("read_shell: every beginning of a script reads or fails in one line") {
  const std::string text =
      "L=(a \"b $X\" 'c')\nif [[ -z $X && $Y == 1 ]]; then\n  A=${X:-`d`}\nelse A+=2; fi\n"
      "bash -c 'run \"${L[@]}\" $((1+2))' <<E >f\nE\ncase $1 in a) x;; esac\n";
  for (size_t length = 0; length <= text.size(); ++length) {
    message(text.substr(0, length));
    message(text.substr(length));
  }
}
