#include "lib/run/import_recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/run/import_dialects.h"

namespace mm::run {
namespace {

constexpr uint64_t kMaxScriptBytes = 1 << 20;

bool speaks_megatron(const TrainCommand& command) {
  return std::any_of(command.flags.begin(), command.flags.end(), [](const ImportFlag& flag) {
    return flag.key == "global_batch_size" || flag.key == "micro_batch_size" ||
           flag.key == "train_iters" || flag.key == "tensor_model_parallel_size";
  });
}

/// What the launcher was told is how the run is laid out; its count is in the global batch.
void account_launcher(detail::ImportContext& c) {
  for (const ImportFlag& flag : c.command.launcher)
    c.report.unmapped.push_back({flag.flag, flag.value(),
                                 "of the launcher: mmtrain launch --nproc N, or srun, starts ranks",
                                 true});
}

std::vector<std::string> header(const detail::ImportContext& c, bool megatron,
                                const std::vector<std::string>& pack) {
  std::vector<std::string> out;
  out.push_back(fmt::format("Made by mmtrain import-recipe from {} arguments ({}).",
                            megatron ? "Megatron-LM's" : "LLaVA's", c.origin));
  out.emplace_back("");
  for (const std::string& row : pack) out.push_back("  " + row);
  for (size_t i = pack.empty() ? 0 : 1; i < c.report.commands.size(); ++i)
    out.push_back("  " + c.report.commands[i]);
  out.emplace_back("");
  for (const std::string& row : c.report.lines()) out.push_back(row);
  return out;
}

std::string joined(const std::vector<std::string>& rows) {
  std::string out;
  for (std::string row : rows) {
    if (row.ends_with(" \\")) row.resize(row.size() - 2);
    row.erase(0, row.find_first_not_of(' '));
    out += (out.empty() ? "" : " ") + row;
  }
  return out;
}

ImportedRecipe import_command(TrainCommand command, const std::filesystem::path& script,
                              const ImportOptions& options) {
  const bool megatron =
      options.dialect == "auto" ? speaks_megatron(command) : options.dialect == "megatron";
  detail::ImportContext context(std::move(command), options, script.filename().string());
  PackCommand pack;
  if (megatron) {
    detail::map_megatron(context, pack);
    context.finish(detail::megatron_remarks());
  } else {
    detail::map_llava(context, script, pack);
    std::vector<detail::FlagRemark> remarks(detail::llava_remarks().begin(),
                                            detail::llava_remarks().end());
    remarks.insert(remarks.end(), detail::hf_trainer_remarks().begin(),
                   detail::hf_trainer_remarks().end());
    context.finish(remarks);
  }
  account_launcher(context);
  const std::vector<std::string> rows = pack.lines();
  context.report.commands.insert(context.report.commands.begin(), joined(rows));
  std::string toml = context.draft.text(header(context, megatron, rows));
  return {.toml = std::move(toml), .report = std::move(context.report)};
}

}  // namespace

ImportedRecipe import_script(std::string_view text, const std::filesystem::path& origin,
                             const ImportOptions& options) {
  const std::string name = origin.filename().string();
  ShellInput input{.origin = name, .variables = options.variables, .arguments = {}};
  if (!options.arguments.empty())
    input.arguments.assign(options.arguments.begin() + 1, options.arguments.end());
  const ShellScript script = read_shell(text, input);
  ImportedRecipe imported =
      import_command(find_train_command(script, options.command, name), origin, options);
  std::vector<std::string>& notes = imported.report.notes;
  for (const std::string& note : script.notes) notes.push_back(name + ", " + note);
  return imported;
}

ImportedRecipe import_recipe(const ImportOptions& options) {
  if (options.arguments.empty())
    throw UsageError(
        "no script and no flags; expected import-recipe SCRIPT, or -- --flag value ...");
  const std::string& first = options.arguments.front();
  if (first.starts_with("--")) {
    ShellScript script;
    script.commands.push_back({.line = 1, .words = options.arguments});
    return import_command(find_train_command(script, 0, "the command line"), "the command line",
                          options);
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(first, error))
    throw UsageError("{}: no such script; expected a file, or flags behind --", first);
  return import_script(read_file(first, kMaxScriptBytes), first, options);
}

}  // namespace mm::run
