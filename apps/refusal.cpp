#include "apps/refusal.h"

#include <fmt/format.h>

#include <vector>

#include "lib/base/edit_distance.h"

namespace mm {
namespace {

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The first option of the command line that the verb does not have.
std::string unknown_option(const CLI::App& verb) {
  for (const std::string& word : verb.remaining()) {
    if (word.starts_with("-") && word != "-" && word != "--") return word.substr(0, word.find('='));
  }
  return {};
}

}  // namespace

std::string refusal(const CLI::App& app, const CLI::ParseError& error, int argc,
                    const char* const* argv) {
  const std::string& tool = app.get_name();
  const std::string start = tool + ": error: ";
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (!verb->parsed()) continue;
    const std::string where = fmt::format("see `{} {} --help`", tool, verb->get_name());
    const std::string option = unknown_option(*verb);
    if (option.empty()) return fmt::format("{}{} ({})", start, error.what(), where);
    const auto near = nearest_word(option, options_of(*verb));
    return fmt::format("{}{} has no option {}{}; {}", start, verb->get_name(), option,
                       near ? fmt::format("; did you mean {}?", *near) : "", where);
  }
  const bool word = argc > 1 && argv[1][0] != '-' && argv[1][0] != '\0';
  if (!word) return fmt::format("{}{} (see `{} --help`)", start, error.what(), tool);
  return fmt::format("{}\"{}\" is no verb{}; see `{} --help`", start, argv[1],
                     suggestion(argv[1], verbs_of(app)), tool);
}

}  // namespace mm
